//! Tool-call ids that another provider accepts (S158).

use crate::message::Message;

use super::repair::TargetModel;

/// Anthropic, Bedrock, and Google models that need ids.
pub fn anthropic(id: &str) -> String {
    cut(&sanitise(id), 64)
}

/// Chat-completions services.
pub fn chat_completions(id: &str, model: &TargetModel) -> String {
    const LIMIT: usize = 40;
    let Some((call, rest)) = id.split_once('|') else {
        return if model.provider == "openai" { cut_text(id, LIMIT) } else { id.to_owned() };
    };
    let (call, rest) = (sanitise(call), sanitise(rest));
    let joined = if rest.is_empty() { call.clone() } else { format!("{call}_{rest}") };
    if joined.len() <= LIMIT {
        return joined;
    }
    let hash = cut(&format!("{:0>8}", hash(id)), 8);
    format!("{}_{hash}", cut(&call, LIMIT - 1 - hash.len()))
}

/// The Responses API, whose ids are `call|item`. `from` is the assistant message that holds the call.
pub fn responses(id: &str, model: &TargetModel, from: &Message) -> String {
    let part = |text: &str| cut(&sanitise(text), 64).trim_end_matches('_').to_owned();
    let Some((call, item)) = id.split_once('|') else { return part(id) };
    let foreign = from.get_str("provider") != Some(&model.provider) || from.get_str("api") != Some(&model.api);
    let item = match part(item) {
        // The service knows its own items only; a foreign id would be looked up and refused.
        _ if foreign => format!("fc_{}", hash(item)),
        item if item.starts_with("fc_") => item,
        item => part(&format!("fc_{item}")),
    };
    format!("{}|{item}", part(call))
}

/// The Responses API of services that have no ids of their own: one part.
pub fn whole(id: &str) -> String {
    cut(&sanitise(id), 64).trim_end_matches('_').to_owned()
}

/// Everything but ASCII letters, digits, `_` and `-` becomes `_`, one for each UTF-16 code unit.
fn sanitise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            out.push(c);
        } else {
            out.extend(std::iter::repeat_n('_', c.len_utf16()));
        }
    }
    out
}

/// The first `limit` characters of ASCII text.
fn cut(ascii: &str, limit: usize) -> String {
    ascii[..ascii.len().min(limit)].to_owned()
}

/// At most `limit` UTF-16 code units, never half a character.
fn cut_text(text: &str, limit: usize) -> String {
    let mut units = 0;
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= limit
        })
        .collect()
}

/// A short name that depends on the text only: cyrb53, a function in the public domain, over UTF-16, both halves in base
/// 36. Other programs with the same sessions use it too, so the same history has the same ids there.
pub(crate) fn hash(text: &str) -> String {
    let (mut a, mut b) = (0xdead_beef_u32, 0x41c6_ce57_u32);
    for unit in text.encode_utf16() {
        a = (a ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        b = (b ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    a = (a ^ (a >> 16)).wrapping_mul(2_246_822_507) ^ (b ^ (b >> 13)).wrapping_mul(3_266_489_909);
    b = (b ^ (b >> 16)).wrapping_mul(2_246_822_507) ^ (a ^ (a >> 13)).wrapping_mul(3_266_489_909);
    base36(b) + &base36(a)
}

fn base36(number: u32) -> String {
    let mut digits = Vec::new();
    let mut rest = number;
    loop {
        digits.push(char::from_digit(rest % 36, 36).unwrap_or('0'));
        rest /= 36;
        if rest == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(provider: &str) -> TargetModel {
        TargetModel { provider: provider.into(), api: "responses".into(), id: "m".into(), images: true }
    }

    #[test]
    fn anthropic_ids() {
        assert_eq!(anthropic("call|one+two/three="), "call_one_two_three_");
        assert_eq!(anthropic(&"x".repeat(80)), "x".repeat(64));
        assert_eq!(anthropic("a🍵"), "a__");
    }

    #[test]
    fn chat_ids() {
        assert_eq!(chat_completions("a+b|c.d", &model("x")), "a_b_c_d");
        assert_eq!(chat_completions("ab|", &model("x")), "ab");
        let long = chat_completions(&format!("{}|{}", "a".repeat(50), "b"), &model("x"));
        assert_eq!((long.len(), &long[..32]), (40, format!("{}_", "a".repeat(31)).as_str()));
        assert_eq!(chat_completions(&"y".repeat(50), &model("x")).len(), 50);
        assert_eq!(chat_completions(&"y".repeat(50), &model("openai")).len(), 40);
    }

    #[test]
    fn responses_ids() {
        let mut from = Message::default();
        from.set("provider", "x");
        from.set("api", "responses");
        assert_eq!(responses("c__|item_", &model("x"), &from), "c|fc_item");
        assert_eq!(responses("c|fc_1", &model("x"), &from), "c|fc_1");
        assert!(responses("c|fc_1", &model("y"), &from).starts_with("c|fc_"));
        assert_ne!(responses("c|fc_1", &model("y"), &from), "c|fc_1");
        assert!(responses(&format!("c|{}", "i".repeat(90)), &model("x"), &from).len() <= 66);
    }
}
