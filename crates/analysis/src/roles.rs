//! What a head is for, in words, by rules that can be checked. To add a role: its line in [`RULES`].
//!
//! A head that reads something has more weight there than a rule asks for, and clearly more than it had before training, when heads
//! read nearly everything alike: what an untrained head does says nothing. A role is no proof of what the model uses: beside it
//! stands what is lost without the head.

use runs::heads::{HeadMeasures, MeasureInfo, Role, RoleInfo};

use crate::flags::{SINK_WEIGHT, SPARE_REMOVAL};

/// The least weight by which a head is said to read something.
pub const READS: f64 = 0.4;
/// The least weight on the farther half of what may be read; a head that reads all alike has about half.
pub const READS_FAR: f64 = 0.75;
/// How much more of it a head must have than before training.
pub const RISEN: f64 = 0.1;
/// The least entropy, as a share of the greatest, of a head that reads everything alike.
pub const UNIFORM: f64 = 0.95;

/// A role, and when a head has it.
pub struct Rule {
    /// Its key in files.
    pub key: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What a head with it does; `{}` is the part of the measure, where it has several.
    pub words: &'static str,
    /// The measure that decides.
    pub measure: &'static str,
    when: When,
}

/// When a number makes a role.
#[derive(Clone, Copy)]
enum When {
    /// So much, and [`RISEN`] more than before training.
    Risen(f64),
    /// So much, whatever it was before.
    AtLeast(f64),
    /// Less than this, whatever it was before.
    Below(f64),
}

/// Every role, in the order in which they are told.
pub const RULES: &[Rule] = &[
    Rule { key: "lookup", title: "lookup", words: "looks up {}", measure: "needed", when: When::Risen(READS) },
    Rule {
        key: "induction",
        title: "induction",
        words: "reads what followed an earlier copy of its token",
        measure: "induction",
        when: When::Risen(READS),
    },
    Rule {
        key: "same_token",
        title: "same token",
        words: "reads earlier copies of its token",
        measure: "same_token",
        when: When::Risen(READS),
    },
    Rule {
        key: "neighbour",
        title: "neighbour",
        words: "reads the position before",
        measure: "previous_token",
        when: When::Risen(READS),
    },
    Rule {
        key: "first_position",
        title: "first position",
        words: "rests on the first position",
        measure: "first_position",
        when: When::Risen(SINK_WEIGHT),
    },
    Rule {
        key: "far",
        title: "far",
        words: "reads what is far away",
        measure: "far_half",
        when: When::Risen(READS_FAR),
    },
    Rule {
        key: "uniform",
        title: "uniform",
        words: "reads everything alike",
        measure: "entropy",
        when: When::AtLeast(UNIFORM),
    },
    Rule {
        key: "spare",
        title: "spare",
        words: "is not missed when it alone is removed",
        measure: "removal",
        when: When::Below(SPARE_REMOVAL),
    },
];

impl Rule {
    /// As a reader of files needs it; `measures` are those of the run.
    fn info(&self, measures: &[MeasureInfo]) -> RoleInfo {
        let title = measures.iter().find(|measure| measure.key == self.measure).map_or(self.measure, |m| &m.title);
        let rule = match self.when {
            When::Risen(least) => format!("{title} at least {least}, and {RISEN} more than before training"),
            When::AtLeast(least) => format!("{title} at least {least}"),
            When::Below(most) => format!("{title} below {most} nats"),
        };
        RoleInfo { key: self.key.into(), title: self.title.into(), rule }
    }

    fn holds(&self, value: f64, untrained: Option<f64>) -> bool {
        match self.when {
            When::Risen(least) => value >= least && untrained.is_some_and(|untrained| value - untrained >= RISEN),
            When::AtLeast(least) => value >= least,
            When::Below(most) => value < most,
        }
    }
}

/// The roles that heads with these measures may have.
pub fn described(measures: &[MeasureInfo]) -> Vec<RoleInfo> {
    let is_measured = |rule: &&Rule| measures.iter().any(|measure| measure.key == rule.measure);
    RULES.iter().filter(is_measured).map(|rule| rule.info(measures)).collect()
}

/// The roles of a head, which was `untrained` before its first step; `parts` are those of what the answer needs. A measure with
/// several parts gives a role for each that is large enough.
pub fn roles(head: &HeadMeasures, untrained: &HeadMeasures, parts: &[String]) -> Vec<Role> {
    let found = |rule: &Rule| {
        let (now, before) = (head.numbers(rule.measure), untrained.numbers(rule.measure));
        let of_part = |(part, &value): (usize, &f64)| {
            let untrained = before.get(part).copied();
            let name = parts.get(part).map_or("what the answer needs", String::as_str);
            rule.holds(value, untrained).then(|| Role {
                role: rule.key.into(),
                words: rule.words.replace("{}", name),
                measure: rule.measure.into(),
                value,
                untrained,
            })
        };
        now.iter().enumerate().filter_map(of_part).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        maps::{Maps, Readable},
        measures,
        needs::{Answer, Needs},
    };

    const L: usize = 12;

    /// A causal head whose query i puts 0.8 on `at(i)` and the rest on everything alike; all alike where that is none.
    fn map(at: impl Fn(usize) -> Option<usize>) -> Vec<f32> {
        let mut weights = vec![0.0; L * L];
        for i in 0..L {
            let (peak, at) = at(i).map_or((0.0, 0), |at| (0.8, at));
            weights[i * L..=i * L + i].fill((1.0 - peak) / (i + 1) as f32);
            weights[i * L + at] += peak;
        }
        weights
    }

    /// The measures of a head with this map, on one sample of `tokens` whose answer at i needs `needed(i)`.
    fn measured(weights: &[f32], tokens: &[i32], needed: impl Fn(usize) -> usize) -> HeadMeasures {
        let readable = Readable::new(1, &[false; L], &[false; L], true);
        let maps = Maps::new(1, weights, &readable);
        let answer = |i: usize| ((0, i), Answer { own: vec![vec![needed(i)]], source: vec![] });
        let needs = Needs { groups: vec!["register 2".into()], answers: (1..L).map(answer).collect() };
        let single = [
            ("entropy", measures::entropy(maps)),
            ("far_half", measures::far_half(maps)),
            ("previous_token", measures::previous_token(maps)),
            ("same_token", measures::same_token(maps, tokens)),
            ("induction", measures::induction(maps, tokens)),
            ("first_position", measures::first_position(maps)),
        ];
        let mut head = HeadMeasures::default();
        for (key, value) in single {
            head.measures.extend(value[0].map(|value| (key.to_string(), value.into())));
        }
        let needed = measures::weight_on_needed(maps, &needs, |answer| &answer.own);
        head.measures.extend(needed[0].clone().map(|value| ("needed".to_string(), value)));
        head.measures.insert("removal".into(), 0.5.into());
        head
    }

    fn names(head: &HeadMeasures, untrained: &HeadMeasures) -> Vec<String> {
        roles(head, untrained, &["register 2".into()]).into_iter().map(|role| role.role).collect()
    }

    #[test]
    fn planted_roles_are_found_and_no_others() {
        // Tokens 0 to 5, twice; what the answer needs stands 4 back.
        let tokens: Vec<i32> = (0..L as i32).map(|i| i % 6).collect();
        let back = |distance: usize| move |i: usize| i.checked_sub(distance);
        let needed = |i: usize| i.saturating_sub(4);
        let of = |at: &dyn Fn(usize) -> Option<usize>| measured(&map(at), &tokens, needed);
        let untrained = of(&|_| None);
        assert_eq!(names(&untrained, &untrained), ["uniform"]);
        assert_eq!(names(&of(&back(4)), &untrained), ["lookup"]);
        assert_eq!(names(&of(&back(1)), &untrained), ["neighbour"]);
        assert_eq!(names(&of(&back(6)), &untrained), ["same_token"]);
        // What followed the earlier copy stands 5 back.
        assert_eq!(names(&of(&back(5)), &untrained), ["induction"]);
        let first = names(&of(&|_| Some(0)), &untrained);
        assert_eq!(first, ["first_position", "far"], "the first position is far away, too");
        assert_eq!(names(&of(&|i| Some(i / 8)), &untrained), ["first_position", "far"]);
        assert_eq!(names(&of(&|i| Some((i / 4).min(2))), &untrained), ["far"]);
        // Itself: none of these.
        assert_eq!(names(&of(&back(0)), &untrained), Vec::<String>::new());
    }

    #[test]
    fn what_a_head_did_untrained_is_no_role() {
        let tokens: Vec<i32> = (0..L as i32).collect();
        let neighbour = measured(&map(|i| i.checked_sub(1)), &tokens, |_| 0);
        assert_eq!(names(&neighbour, &neighbour), Vec::<String>::new());
        let mut spare = neighbour.clone();
        spare.measures.insert("removal".into(), 0.0099.into());
        assert_eq!(names(&spare, &neighbour), ["spare"]);
        let role = &roles(&spare, &neighbour, &[])[0];
        assert_eq!((role.value, role.untrained), (0.0099, Some(0.5)));
    }

    #[test]
    fn a_role_says_what_it_looks_up_and_its_rule_what_it_asks() {
        let with = |value: f64| HeadMeasures {
            measures: [("needed".to_string(), runs::heads::MeasureValue::Parts(vec![0.1, value]))].into(),
            ..Default::default()
        };
        let parts = ["register 0".to_string(), "register 1".to_string()];
        let found = roles(&with(0.78), &with(0.06), &parts);
        assert_eq!(found[0].words, "looks up register 1");
        assert_eq!((found.len(), found[0].value, found[0].untrained), (1, 0.78, Some(0.06)));
        assert!(roles(&with(0.39), &with(0.06), &parts).is_empty());
        assert!(roles(&with(0.42), &with(0.35), &parts).is_empty(), "no more than before training");
    }
}
