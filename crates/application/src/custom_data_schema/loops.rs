//! References that lead back to the same schema for the same value.

use galley_domain::Invalid;

use super::schema::{Keyword, SchemaId, Subschema};

/// Rejects a schema that refers to itself for the same value, whose evaluation would not end.
pub(super) fn check_loops(subschemas: &[Subschema]) -> Result<(), Invalid> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; subschemas.len()];
    let next = |id: usize| match &subschemas[id] {
        Subschema::Keywords(keywords) => keywords.iter().flat_map(Keyword::in_place).collect(),
        Subschema::Boolean(_) => Vec::new(),
    };
    for start in 0..subschemas.len() {
        let mut open = vec![(start, None)];
        while let Some((id, following)) = open.last_mut() {
            let id = *id;
            let following: &mut Vec<SchemaId> = match following {
                Some(following) => following,
                None if states[id] == State::Done => {
                    open.pop();
                    continue;
                }
                None if states[id] == State::Open => {
                    let message = "must not refer to itself for the same value: a recursive $ref \
                         must be below a keyword for members or items, such as properties";
                    return Err(Invalid::new("recursive_schema", message));
                }
                none => {
                    states[id] = State::Open;
                    none.insert(next(id))
                }
            };
            match following.pop() {
                Some(next) => open.push((next as usize, None)),
                None => {
                    states[id] = State::Done;
                    open.pop();
                }
            }
        }
    }
    Ok(())
}
