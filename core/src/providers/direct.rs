//! Streams for hosts that ask a model directly.

use std::sync::Arc;

use futures::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Provider, Request, ResponseStream};

/// How many events may wait for a slow host.
const AHEAD: usize = 64;

/// Runs a request on `runtime`; the stream it gives can be polled anywhere, and dropping it ends the request.
pub(crate) fn stream_on(runtime: &Handle, provider: Arc<dyn Provider>, request: Request) -> ResponseStream {
    let (sender, receiver) = mpsc::channel(AHEAD);
    runtime.spawn(async move {
        let cancel = request.cancel.clone();
        let mut events = provider.stream(request);
        loop {
            tokio::select! {
                () = sender.closed() => break cancel.cancel(),
                event = events.next() => match event {
                    Some(event) => {
                        if sender.send(event).await.is_err() {
                            break cancel.cancel();
                        }
                    }
                    None => break,
                },
            }
        }
    });
    Box::pin(stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) }))
}
