//! What a model answers with.

/// What a model of a task says at each position, and so what it can mean to go on from a prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answers {
    /// A class from a space of its own: there is nothing to read next.
    Classes,
    /// A token of the vocabulary that is read. Only scored positions are trained.
    Tokens,
    /// The next token of the target, whose tokens are read in turn, after `start` and until `end`.
    Sequence {
        /// The decoder's first token.
        start: u32,
        /// The token that says that the target is complete.
        end: u32,
    },
}
