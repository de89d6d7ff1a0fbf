//! Watching what goes over the wire.

/// Sees every request to a service and every answer as they are on the wire, secrets removed from what is sent: for
/// recording and for diagnosis. Called on worker threads in the order of one exchange; must not block.
pub trait WireObserver: Send + Sync {
    /// A request is about to be sent. `exchange` tells exchanges of an engine apart; a repeated request is a new one.
    fn request(&self, exchange: u64, method: &str, url: &str, headers: &[(String, String)], body: &[u8]);
    /// The answer's head arrived. Headers that set cookies are left out.
    fn response(&self, exchange: u64, status: u16, headers: &[(String, String)]);
    /// Bytes of the answer's body arrived, as they were sent.
    fn bytes(&self, exchange: u64, bytes: &[u8]);
    /// Nothing follows: the answer is complete, was broken off, or there was none.
    fn end(&self, exchange: u64);
}

impl std::fmt::Debug for dyn WireObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WireObserver")
    }
}
