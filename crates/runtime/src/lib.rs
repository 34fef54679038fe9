//! Bounds on shared resources, so that overload rejects work early instead of slowing all of it.
//!
//! - [`AdmissionQueue`] bounds the waiting tasks of one resource, such as a pool of connections.
//! - [`MemoryBudget`] bounds the bytes of request bodies and responses in memory.
//! - [`CpuPool`] runs CPU-bound work beside the threads that serve requests.
//! - [`memory_limit()`] returns the memory of the machine or container, for sizes of caches.
//! - [`lower_priority`] lets the threads of requests run before those of background work.

mod admission_queue;
mod cpu_pool;
mod memory_budget;
mod memory_limit;
mod overloaded;
mod thread_priority;

pub use admission_queue::{AdmissionLimits, AdmissionQueue};
pub use cpu_pool::CpuPool;
pub use memory_budget::{MemoryBudget, Reservation, UNCOUNTED};
pub use memory_limit::memory_limit;
pub use overloaded::Overloaded;
pub use thread_priority::lower_priority;
