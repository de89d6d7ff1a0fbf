//! Thinking levels (S18, S293).

/// Every level, lowest first.
pub const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The level a model can do: the wanted one, else the next higher supported one, else the next lower one (S293).
///
/// `supported` is what the model offers; an empty list (or a word that is no level) gives `off`.
pub fn clamp<'a>(wanted: &str, supported: &[&'a str]) -> &'a str {
    let rank = |level: &str| LEVELS.iter().position(|known| *known == level);
    let Some(target) = rank(wanted) else { return "off" };
    let ranked = || supported.iter().filter_map(|level| rank(level).map(|rank| (rank, *level)));
    let higher = ranked().filter(|(rank, _)| *rank >= target).min();
    higher.or_else(|| ranked().filter(|(rank, _)| *rank < target).max()).map_or("off", |(_, level)| level)
}

#[cfg(test)]
mod tests {
    use super::clamp;

    #[test]
    fn higher_first_then_lower() {
        assert_eq!(clamp("medium", &["off", "low", "high"]), "high");
        assert_eq!(clamp("max", &["off", "low", "high"]), "high");
        assert_eq!(clamp("low", &["off", "low", "high"]), "low");
        assert_eq!(clamp("high", &["off"]), "off");
        assert_eq!(clamp("high", &[]), "off");
        assert_eq!(clamp("loud", &["off", "low"]), "off");
    }
}
