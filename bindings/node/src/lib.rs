//! node binding.
