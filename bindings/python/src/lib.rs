//! python binding.
