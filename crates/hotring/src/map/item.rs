//! The node of an entry of any types.

use std::convert::Infallible;
use std::ptr::NonNull;

use crate::draft::{Draft, New};
use crate::link::{At, Entry, Node, Owned};

/// A key and its value behind a node's header, in one allocation.
#[repr(C)]
pub(crate) struct Item<K, V> {
    node: Node,
    key: K,
    value: V,
}

impl<K: 'static, V: 'static> Item<K, V> {
    /// A node of its own. Aborts, as all of `std` does, if there is no memory.
    fn owned(order: u64, key: K, value: V) -> Owned<Self> {
        let item = Box::new(Self {
            node: Node::new(order),
            key,
            value,
        });
        // SAFETY: a box is not null.
        let item = unsafe { NonNull::new_unchecked(Box::into_raw(item)) };
        // SAFETY: new, and the pointer is the one to all of the box.
        unsafe { Owned::new(item.cast()) }
    }

    /// The entry of a node that was not put into the list.
    fn take(owned: Owned<Self>) -> (K, V) {
        let item = owned.into_raw().cast::<Self>();
        // SAFETY: made by `owned`, and given up by its only owner.
        let item = unsafe { Box::from_raw(item.as_ptr()) };
        (item.key, item.value)
    }

    /// # Safety
    ///
    /// `node` was made for this type of entry, and is not freed during `'g`.
    #[inline(always)]
    pub(crate) unsafe fn key<'g>(node: NonNull<Node>) -> &'g K {
        // SAFETY: by the caller's promise; only the header of a shared node changes, by atomics.
        unsafe { &(*node.cast::<Self>().as_ptr()).key }
    }

    /// # Safety
    ///
    /// As for [`Item::key`].
    #[inline(always)]
    pub(crate) unsafe fn value<'g>(node: NonNull<Node>) -> &'g V {
        // SAFETY: as for the key.
        unsafe { &(*node.cast::<Self>().as_ptr()).value }
    }

    /// # Safety
    ///
    /// `at` is a node for this type of entry.
    #[inline(always)]
    pub(crate) unsafe fn value_at<'g>(at: At<'g>) -> &'g V {
        // SAFETY: by the caller's promise; the guard keeps the node.
        unsafe { Self::value(at.node_ptr()) }
    }
}

/// An entry that has no node yet.
#[derive(Debug)]
pub(crate) struct Apart<K, V> {
    pub(crate) order: u64,
    pub(crate) key: K,
    pub(crate) value: V,
}

impl<K: 'static, V: 'static> Draft<Item<K, V>> for Apart<K, V> {
    type Error = Infallible;

    fn make(self) -> Result<Owned<Item<K, V>>, Infallible> {
        Ok(Item::owned(self.order, self.key, self.value))
    }
}

/// An entry that is to be stored.
pub(crate) type NewItem<K, V> = New<Apart<K, V>, Item<K, V>>;

impl<K: 'static, V: 'static> NewItem<K, V> {
    #[inline(always)]
    pub(crate) fn key(&self) -> &K {
        match self {
            Self::Draft(apart) => &apart.key,
            // SAFETY: made for this type of entry, and not freed before `self` goes.
            Self::Made(node) => unsafe { Item::<K, V>::key(node.node()) },
        }
    }

    /// The entry, which was not stored.
    pub(crate) fn take(self) -> (K, V) {
        match self {
            Self::Draft(apart) => (apart.key, apart.value),
            Self::Made(node) => Item::take(node),
        }
    }
}

// SAFETY: `free` undoes `owned`. Every function of the map that stores an entry asks that the types
// be `Send`.
unsafe impl<K: 'static, V: 'static> Entry for Item<K, V> {
    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: made by `owned`; the caller is the last to use it.
        drop(unsafe { Box::from_raw(node.cast::<Self>().as_ptr()) });
    }

    unsafe fn bytes(_: NonNull<Node>) -> usize {
        size_of::<Self>()
    }
}
