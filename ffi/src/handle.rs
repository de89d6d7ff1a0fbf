//! Handles are tokens, not addresses.
//!
//! Hazard: a host frees twice, uses what it freed, passes an engine where a session is due, or frees on one thread what
//! another is using. Dereferencing what it passed would turn each of these into memory corruption. So the pointer a host
//! holds is a number that is never dereferenced: kind, slot and generation. Each kind has a table; a number that does
//! not match a live slot is an error, and a call keeps what it found alive until it returns.
//!
//! Layout, from bit 0: a set bit, which no address of an object has; 4 bits kind; then slot; then generation. 47 bits in
//! all, like user-space addresses, because hosts with tagged pointers rely on that.

use std::ffi::c_void;
use std::sync::{Arc, RwLock};

use crate::error::Failure;
use crate::fork_guard;
use crate::status::branchline_status;

const KIND_BITS: u32 = 4;
#[cfg(target_pointer_width = "64")]
const SLOT_BITS: u32 = 22;
#[cfg(target_pointer_width = "64")]
const GENERATION_BITS: u32 = 20;
#[cfg(target_pointer_width = "32")]
const SLOT_BITS: u32 = 15;
#[cfg(target_pointer_width = "32")]
const GENERATION_BITS: u32 = 12;

const KIND_SHIFT: u32 = 1;
const SLOT_SHIFT: u32 = KIND_SHIFT + KIND_BITS;
const GENERATION_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;

/// Something the host holds a handle to.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    /// The opaque type the host's pointer points to.
    type C;
    /// Distinct for each type, 1 to 15.
    const KIND: usize;
    /// For error messages.
    const NAME: &'static str;
    fn table() -> &'static Table<Self>;
}

/// All live objects of one kind.
pub(crate) struct Table<T>(RwLock<Slots<T>>);

struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Slots without an object. A slot whose generations are used up is in no list: its old tokens stay invalid for ever.
    free: Vec<usize>,
}

struct Slot<T> {
    generation: usize,
    object: Option<Arc<T>>,
}

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Table<T> {
        Table(RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }))
    }

    fn insert(&self, object: Arc<T>) -> Result<usize, Failure> {
        fork_guard::claim();
        let mut table = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let slot = match table.free.pop() {
            Some(slot) => slot,
            None if table.slots.len() < 1 << SLOT_BITS => {
                table.slots.push(Slot { generation: 0, object: None });
                table.slots.len() - 1
            }
            None => {
                let text = format!("too many {} handles are alive; free some", T::NAME);
                return Err(Failure::new(branchline_status::INTERNAL, text));
            }
        };
        let entry = &mut table.slots[slot];
        entry.object = Some(object);
        const { assert!(T::KIND < 1 << KIND_BITS, "a kind needs its place in the token") };
        Ok(1 | T::KIND << KIND_SHIFT | slot << SLOT_SHIFT | entry.generation << GENERATION_SHIFT)
    }

    fn find(&self, token: usize) -> Option<Arc<T>> {
        let (slot, generation) = parts::<T>(token)?;
        let table = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entry = table.slots.get(slot).filter(|entry| entry.generation == generation)?;
        entry.object.clone()
    }

    fn remove(&self, token: usize, may: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
        let (slot, generation) = parts::<T>(token)?;
        let mut table = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entry = table.slots.get_mut(slot).filter(|entry| entry.generation == generation)?;
        if !entry.object.as_deref().is_some_and(may) {
            return None;
        }
        let object = entry.object.take();
        entry.generation += 1;
        if entry.generation < 1 << GENERATION_BITS {
            table.free.push(slot);
        }
        object
    }
}

fn parts<T: Object>(token: usize) -> Option<(usize, usize)> {
    let kind = token >> KIND_SHIFT & ((1 << KIND_BITS) - 1);
    let slot = token >> SLOT_SHIFT & ((1 << SLOT_BITS) - 1);
    (token & 1 == 1 && kind == T::KIND).then_some((slot, token >> GENERATION_SHIFT))
}

/// A handle that was not handed out yet: dropping it frees the object.
pub(crate) struct Handle<T: Object>(usize, std::marker::PhantomData<T>);

impl<T: Object> Handle<T> {
    pub(crate) fn new(object: T) -> Result<Handle<T>, Failure> {
        Handle::from_arc(Arc::new(object))
    }

    pub(crate) fn from_arc(object: Arc<T>) -> Result<Handle<T>, Failure> {
        Ok(Handle(T::table().insert(object)?, std::marker::PhantomData))
    }

    /// The token, still owned by this value.
    pub(crate) fn token(&self) -> *mut T::C {
        std::ptr::without_provenance_mut(self.0)
    }

    /// The token, now owned by the host.
    pub(crate) fn into_token(self) -> *mut T::C {
        let token = self.token();
        std::mem::forget(self);
        token
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        T::table().remove(self.0, |_| true);
    }
}

/// The object behind a handle.
pub(crate) fn get<T: Object>(pointer: *const T::C) -> Result<Arc<T>, Failure> {
    if pointer.is_null() {
        return Err(Failure::new(branchline_status::INVALID_ARGUMENT, format!("the {} handle is NULL", T::NAME)));
    }
    peek(pointer).ok_or_else(|| invalid::<T>(pointer.addr()))
}

/// The object behind a handle, for functions that have no way to report an error.
pub(crate) fn peek<T: Object>(pointer: *const T::C) -> Option<Arc<T>> {
    T::table().find(pointer.addr())
}

/// Takes a handle back from the host. `None` for NULL.
pub(crate) fn take<T: Object>(pointer: *const T::C) -> Result<Option<Arc<T>>, Failure> {
    take_if(pointer, |_: &T| true)
}

/// [`take`], unless the object is one that the host may not free.
pub(crate) fn take_if<T: Object>(
    pointer: *const T::C,
    may: impl FnOnce(&T) -> bool,
) -> Result<Option<Arc<T>>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    match T::table().remove(pointer.addr(), may) {
        Some(object) => Ok(Some(object)),
        None => Err(invalid::<T>(pointer.addr())),
    }
}

fn invalid<T: Object>(token: usize) -> Failure {
    let pointer: *const c_void = std::ptr::without_provenance(token);
    let text = format!(
        "{pointer:p} is no live {} handle: it was freed, is of another type, or never came from this library",
        T::NAME
    );
    Failure::new(branchline_status::INVALID_HANDLE, text)
}
