//! Deliveries: events on their way to webhooks.
//!
//! [`expand`] makes deliveries of what events matched, [`lease`] hands out those that are due, and
//! [`settle`] keeps what came of them. Each webhook has its own line with a row in
//! `webhook_queues`, which says when to look at it next and is locked by whoever works on the line;
//! several nodes can do so at the same time. A delivery is leased by one of them at a time, for
//! longer than an attempt can take, and only the holder of the lease settles it.
//!
//! Nothing here reads again and again what was deleted or is done: on PostgreSQL that stays in the
//! indexes for as long as somebody has a transaction open. Lines know from where on they have
//! something, and so does [`Front`] of what events matched.

mod front;
mod lines;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join_all};
use galley_domain::content_group::GroupPath;
use galley_domain::delivery::{HELD_MAX, Health, Lane, Outcome, Status, Step};
use galley_domain::event::{EventType, Occurrence};
use galley_domain::{ContentGroupId, DeliveryId, EventId, Timestamp, WebhookId, WorkspaceId};

use crate::content_pieces::in_list;
use crate::error::{Error, Result};
use crate::events::{CUSTOM_DATA, with_custom_data};
use crate::row::Row;
use crate::tx::{Tx, WriteTx};
use crate::value::{Value, params};
use crate::webhooks::{self, SENDS};

pub use front::Front;
pub use lines::Lines;
pub(crate) use lines::open as open_line;
use lines::{Line, lock as lock_line};
pub use sessions::{DeadSession, Heartbeat, bury_session, close_session, open_session};

/// A delivery that nobody holds at the time in `?3`. To ask for the one lease has PostgreSQL look for it by its key; `NOT
/// EXISTS` it may answer by reading all of a line's.
const NOT_LEASED: &str = "COALESCE((SELECT l.until_ms FROM delivery_leases l
    WHERE l.workspace_id = d.workspace_id AND l.webhook_id = d.webhook_id
        AND l.delivery_id = d.id), 0) <= ?3";

/// Sees to it that nothing that is sent changes the webhook until the transaction ends: to be called before
/// it is read to be changed.
pub async fn hold_still(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<()> {
    if tx.has_other_writers() {
        lock_line(tx, workspace, webhook).await?;
    }
    Ok(())
}

/// Has a webhook's line looked at anew, as the webhook has changed; `starts_afresh` forgets how its
/// receiver has been doing.
pub async fn webhook_changes(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    starts_afresh: bool,
    now: Timestamp,
) -> Result<()> {
    if let Some(mut line) = lock_line(tx, workspace, webhook).await? {
        if starts_afresh {
            line.state.health = Health::default();
        }
        line.state.next_at = Some(now);
        line.save(tx).await?;
        tx.announce();
    }
    Ok(())
}

/// What events matched, and no deliveries are made of yet.
#[derive(Debug)]
struct Match {
    id: EventId,
    event_type: EventType,
    part: i64,
    workspace: WorkspaceId,
    first_sequence: i64,
    last_sequence: i64,
    webhooks: Vec<WebhookId>,
    /// How many of the webhooks have a delivery of the first event.
    done: usize,
}

fn read_match(row: &Row<'_>) -> Result<Match> {
    Ok(Match {
        id: row.parse(0)?,
        event_type: row.text(1)?.parse().map_err(Error::corrupt)?,
        part: row.int(2)?,
        workspace: row.parse(3)?,
        first_sequence: row.int(4)?,
        last_sequence: row.int(5)?,
        webhooks: row.parse_list(6)?,
        done: usize::try_from(row.int(7)?).map_err(Error::corrupt)?,
    })
}

/// How many runs of events are looked at in one go.
const MATCHES_MAX: usize = 16;

/// Locks all lines that a transaction will wait for, on PostgreSQL: those of settlements, those that [`expand`] makes about
/// `max` deliveries for, and those of recoveries. To be called first. Who waits for a line while holding another one must
/// keep to one order, or two programs wait for each other; what [`lease`] takes besides it never waits for.
pub async fn lock_ahead(
    tx: &WriteTx<'_>,
    lines: &mut Lines,
    front: &Front,
    settlements: &[Settlement],
    max: usize,
) -> Result<()> {
    if !tx.has_other_writers() {
        return Ok(());
    }
    let mut wanted: BTreeMap<WorkspaceId, BTreeSet<WebhookId>> = BTreeMap::new();
    for one in settlements {
        wanted.entry(one.workspace).or_default().insert(one.webhook);
    }
    if max > 0 {
        let (found, recoveries) = try_join(matches(tx, front), recoveries(tx)).await?;
        let (mut matches, mut left) = (Vec::new(), max);
        for matched in found {
            let webhooks = matched.webhooks.get(matched.done..).unwrap_or_default();
            let webhooks = &webhooks[..webhooks.len().min(left)];
            if left > 0 {
                left -= webhooks.len();
                wanted.entry(matched.workspace).or_default().extend(webhooks);
                matches.push(matched);
            }
        }
        for one in &recoveries {
            wanted.entry(one.workspace).or_default().insert(one.webhook);
        }
        lines.look_ahead(matches, recoveries);
    }
    for (workspace, webhooks) in wanted {
        let webhooks: Vec<WebhookId> = webhooks.into_iter().collect();
        lines.lock(tx, workspace, &webhooks).await?;
    }
    Ok(())
}

/// The next runs of events that deliveries are to be made of.
async fn matches(tx: &WriteTx<'_>, front: &Front) -> Result<Vec<Match>> {
    let lock = tx.for_update_skip_locked();
    let sql = format!(
        "SELECT id, event_type, part, workspace_id, first_sequence, last_sequence, webhook_ids,
            done
         FROM event_matches WHERE id >= ?1
         ORDER BY id, event_type, part LIMIT {MATCHES_MAX}{lock}"
    );
    let matches = tx.query(&sql, params![front.look(tx)], read_match).await?;
    if let Some(first) = matches.first() {
        front.saw(first.id);
    }
    Ok(matches)
}

/// Makes deliveries of what events matched, about `max` of them, the oldest first; says whether there may be
/// more to make.
pub async fn expand(
    tx: &WriteTx<'_>,
    lines: &mut Lines,
    front: &Front,
    mut new_id: impl FnMut() -> DeliveryId,
    max: usize,
    now: Timestamp,
) -> Result<bool> {
    let matches = match lines.matches_ahead() {
        Some(ahead) => ahead,
        None => matches(tx, front).await?,
    };
    let more = matches.len() == MATCHES_MAX;
    let mut left = max;
    for (place, matched) in matches.into_iter().enumerate() {
        if left == 0 || (place > 0 && tx.is_in_the_way()) {
            return Ok(true);
        }
        if !expand_run(tx, lines, matched, &mut new_id, &mut left, now).await? {
            return Ok(true);
        }
    }
    // Those that were looked up ahead end where there would have been too much to do.
    Ok(more || left == 0)
}

/// Makes deliveries of the next events of a run, or of the next event for some of its webhooks; says
/// whether that was all of it.
async fn expand_run(
    tx: &WriteTx<'_>,
    lines: &mut Lines,
    matched: Match,
    new_id: &mut impl FnMut() -> DeliveryId,
    left: &mut usize,
    now: Timestamp,
) -> Result<bool> {
    let Match { workspace, event_type, done, .. } = &matched;
    let waiting = matched.webhooks.get(*done..).unwrap_or_default();
    let webhooks = &waiting[..waiting.len().min((*left).max(1))];
    let count = if *done == 0 { (*left / webhooks.len().max(1)).max(1) } else { 1 };
    let events = tx
        .query(
            "SELECT sequence, id FROM events
             WHERE workspace_id = ?1 AND sequence >= ?2 AND sequence <= ?3
             ORDER BY sequence LIMIT ?4",
            params![
                *workspace,
                matched.first_sequence,
                matched.last_sequence,
                i64::try_from(count).unwrap_or(i64::MAX)
            ],
            |row| Ok((row.int(0)?, row.parse::<EventId>(1)?)),
        )
        .await?;
    *left = left.saturating_sub(events.len().max(1) * webhooks.len());
    let locked = lines.lock(tx, *workspace, webhooks).await?;
    let sending = webhooks::which_send(tx, *workspace, webhooks).await?;
    let mut rows: Vec<Vec<Value<'_>>> = Vec::new();
    let mut too_many = Vec::new();
    for line in locked {
        // One that was deleted since gets nothing.
        let Some(&sends) = sending.get(&line.webhook) else { continue };
        for &(sequence, event) in &events {
            rows.push(
                params![
                    *workspace,
                    new_id(),
                    line.webhook,
                    event,
                    event_type.as_str(),
                    sequence,
                    Status::Pending.as_str(),
                    Lane::Fresh.number(),
                    now
                ]
                .to_vec(),
            );
        }
        line.state.pending += i64::try_from(events.len()).unwrap_or_default();
        line.waits_from(now);
        if sends {
            line.look_at(now);
        }
        if !sends && line.state.pending > HELD_MAX {
            too_many.push(line);
        }
    }
    tx.execute_each(
        "INSERT INTO deliveries (workspace_id, id, webhook_id, event_id, event_type, sequence,
            status, lane, due_at_ms, attempts, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?9)",
        &rows,
    )
    .await?;
    for line in too_many {
        drop_oldest(tx, line, now).await?;
    }
    // Where the next slice begins; events that aren't kept any more are behind it.
    let last = events.last().map_or(matched.last_sequence, |(sequence, _)| *sequence);
    let (next, done) =
        if webhooks.len() < waiting.len() { (last, done + webhooks.len()) } else { (last + 1, 0) };
    let done = i64::try_from(done).map_err(Error::corrupt)?;
    let key = params![matched.id, event_type.as_str(), matched.part, next, done];
    if next > matched.last_sequence {
        let sql = "DELETE FROM event_matches WHERE id = ?1 AND event_type = ?2 AND part = ?3";
        tx.execute(sql, &key[..3]).await?;
        return Ok(true);
    }
    let sql = "UPDATE event_matches SET first_sequence = ?4, done = ?5
         WHERE id = ?1 AND event_type = ?2 AND part = ?3";
    tx.execute(sql, key).await?;
    Ok(false)
}

/// Drops the oldest deliveries of a disabled webhook that has more than it may keep, but none that is under way.
async fn drop_oldest(tx: &WriteTx<'_>, line: &mut Line, now: Timestamp) -> Result<()> {
    let many = line.state.pending - HELD_MAX;
    let dropped = tx
        .execute(
            &format!(
                "DELETE FROM deliveries WHERE workspace_id = ?1 AND id IN (
                SELECT d.id FROM deliveries d WHERE d.workspace_id = ?1 AND d.webhook_id = ?2
                    AND status = 'pending' AND lane > 0 AND due_at_ms >= ?5 AND {NOT_LEASED}
                ORDER BY lane, due_at_ms LIMIT ?4)"
            ),
            params![line.workspace, line.webhook, now, many, line.state.due_from],
        )
        .await?;
    let dropped = i64::try_from(dropped).unwrap_or(many);
    line.state.pending -= dropped;
    webhooks::count_dropped(tx, line.workspace, line.webhook, dropped).await
}

/// What somebody who sends deliveries takes.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    /// What time it is.
    pub now: Timestamp,
    /// Until when they are theirs.
    pub until: Timestamp,
    /// Names the lease.
    pub lease: String,
    /// The session that they belong to.
    pub session: String,
    /// How many deliveries of webhooks that are well.
    pub max: usize,
    /// How many of webhooks that are failing.
    pub failing_max: usize,
}

/// A delivery to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The delivery.
    pub id: DeliveryId,
    /// Names the lease.
    pub lease: String,
    /// The session that it belongs to.
    pub session: String,
    /// Until when it is theirs.
    pub until: Timestamp,
    /// How the webhook's receiver has been doing.
    pub health: Health,
    /// Where it is sent to.
    pub url: String,
    /// The webhook's encrypted secret, if it has one.
    pub sealed_secret: Option<Vec<u8>>,
    /// The event.
    pub event: EventId,
    /// The event as the webhook sees it.
    pub event_type: EventType,
    /// The event's number; none of a sample.
    pub sequence: Option<i64>,
    /// When it happened.
    pub happened_at: Timestamp,
    /// The resource as JSON; nothing, where the event isn't kept any more.
    pub data: Option<String>,
    /// How often it has been attempted.
    pub attempts: u32,
    /// What came of that, as JSON.
    pub log: Option<String>,
    /// What it waited in line with.
    pub is_test: bool,
}

/// How many lines are looked at in one go.
const QUEUES_MAX: i64 = 64;

/// Takes deliveries that are due, of each webhook no more than its receiver can do with; says whether
/// there are lines that it has not looked at.
pub async fn lease(
    tx: &WriteTx<'_>,
    lines: &mut Lines,
    front: &Front,
    request: &LeaseRequest,
) -> Result<(Vec<Leased>, bool)> {
    let is_whole = front.is_whole(tx);
    let (mut all, mut more) = (Vec::new(), false);
    for (is_failing, max) in [(false, request.max), (true, request.failing_max)] {
        if max == 0 {
            continue;
        }
        let (lock, sign) = (tx.for_update_skip_locked(), if is_failing { ">" } else { "=" });
        let sql = format!(
            "SELECT {columns} FROM webhook_queues
             WHERE next_at_ms <= ?1 AND failures {sign} 0
             ORDER BY next_at_ms LIMIT {QUEUES_MAX}{lock}",
            columns = lines::COLUMNS
        );
        let mut found = tx.query(&sql, params![request.now], lines::read).await?;
        let has_all = found.len() < usize::try_from(QUEUES_MAX).unwrap_or(usize::MAX);
        // Of those that this transaction has worked on the store does not know what became of them.
        found.retain(|line| lines.get(line.workspace, line.webhook).is_none());
        let is_due = |line: &&Line| {
            let Line { state, .. } = line;
            state.health.is_failing() == is_failing
                && state.next_at.is_some_and(|next| next <= request.now)
        };
        found.extend(lines.iter().filter(is_due).cloned());
        found.sort_by_key(|line| line.state.next_at);
        let mut left = max;
        let mut works = Vec::new();
        for mut line in found {
            let share = left.min(line.state.health.slots as usize);
            if share == 0 {
                break;
            }
            left -= share;
            if is_whole {
                line.forget_bounds();
            }
            works.push(take(tx, request, line, share));
        }
        let wanted = works.len();
        let taken = while_not_in_the_way(tx, works).await?;
        more |= left == 0 || !has_all || taken.len() < wanted;
        for (line, taken) in taken {
            lines.put(line);
            all.extend(taken);
        }
    }
    Ok((all, more))
}

/// Takes at most `max` deliveries of one line.
async fn take(
    tx: &WriteTx<'_>,
    request: &LeaseRequest,
    mut line: Line,
    max: usize,
) -> Result<(Line, Vec<Leased>)> {
    let (workspace, webhook, now) = (line.workspace, line.webhook, request.now);
    let found = webhooks::find_to_send(tx, workspace, webhook);
    let (found, mut held) = try_join(found, leases(tx, &line, now)).await?;
    let Some(target) = found else {
        // Whatever is left of a deleted webhook goes by itself.
        line.state.next_at = None;
        return Ok((line, Vec::new()));
    };
    let health = line.state.health;
    let is_quiet = !target.sends || health.is_open(now);
    let room = (health.slots as usize).saturating_sub(held.count);
    let room = room.min(max);
    let mut taken = Vec::new();
    if room > 0 {
        let lanes: &[Lane] = if is_quiet { &[Lane::Test] } else { &Lane::ALL };
        for due in due(tx, &line, lanes, room, now).await? {
            taken.push(Leased {
                workspace,
                webhook,
                lease: request.lease.clone(),
                session: request.session.clone(),
                until: request.until,
                health,
                url: target.url.clone(),
                sealed_secret: target.sealed_secret.clone(),
                ..due
            });
        }
        let rows: Vec<Vec<Value<'_>>> = taken
            .iter()
            .map(|one| {
                params![workspace, webhook, one.id, &request.lease, &request.session, request.until]
                    .to_vec()
            })
            .collect();
        tx.execute_each(
            "INSERT INTO delivery_leases (workspace_id, webhook_id, delivery_id, lease, session,
                until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (workspace_id, webhook_id, delivery_id)
                DO UPDATE SET lease = excluded.lease, session = excluded.session,
                    until_ms = excluded.until_ms",
            &rows,
        )
        .await?;
        held.add(taken.iter().map(|one| one.id), request.until);
    }
    line.state.leased_from = held.first;
    schedule(tx, &mut line, &held, target.sends, now).await?;
    Ok((line, taken))
}

/// What of a line is leased.
#[derive(Default)]
struct Held {
    count: usize,
    first_end: Option<Timestamp>,
    /// The smallest id.
    first: Option<DeliveryId>,
}

impl Held {
    fn add(&mut self, ids: impl Iterator<Item = DeliveryId>, until: Timestamp) {
        for id in ids {
            self.count += 1;
            self.first_end = Some(self.first_end.map_or(until, |end| end.min(until)));
            self.first = Some(self.first.map_or(id, |first| first.min(id)));
        }
    }
}

async fn leases(tx: &Tx<'_>, line: &Line, now: Timestamp) -> Result<Held> {
    let Some(from) = line.state.leased_from else { return Ok(Held::default()) };
    tx.get(
        "SELECT COUNT(*), MIN(until_ms), MIN(delivery_id) FROM delivery_leases
         WHERE workspace_id = ?1 AND webhook_id = ?2 AND delivery_id >= ?4 AND until_ms > ?3",
        params![line.workspace, line.webhook, now, from],
        |row| {
            Ok(Held {
                count: usize::try_from(row.int(0)?).map_err(Error::corrupt)?,
                first_end: row.opt_time(1)?,
                first: row.opt_parse(2)?,
            })
        },
    )
    .await
}

/// The deliveries of a line that are due and not leased: samples first, then from the other lanes in
/// turns.
async fn due(
    tx: &Tx<'_>,
    line: &Line,
    lanes: &[Lane],
    max: usize,
    now: Timestamp,
) -> Result<Vec<Leased>> {
    let of_lane = |lane: &Lane| {
        format!(
            "SELECT * FROM (SELECT d.* FROM deliveries d
                WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND d.status = 'pending'
                    AND d.lane = {lane} AND d.due_at_ms >= ?5 AND d.due_at_ms <= ?3 AND {NOT_LEASED}
                ORDER BY d.due_at_ms LIMIT ?4) lane_{lane}",
            lane = lane.number()
        )
    };
    let of_lanes = lanes.iter().map(of_lane).collect::<Vec<_>>().join(" UNION ALL ");
    let sql = format!(
        "SELECT due.id, due.event_id, due.event_type, due.sequence, due.attempts, due.log,
            COALESCE(e.created_at_ms, due.created_at_ms), due.due_at_ms,
            CASE WHEN due.data IS NOT NULL THEN due.data
                WHEN due.event_type = 'contentPieceRemoved' AND e.data_before IS NOT NULL
                    THEN e.data_before
                ELSE e.data END,
            due.lane, CASE WHEN due.data IS NULL THEN {CUSTOM_DATA} END
         FROM ({of_lanes}) due
         LEFT JOIN events e ON e.workspace_id = ?1 AND e.sequence = due.sequence
         ORDER BY due.lane, due.due_at_ms"
    );
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        let number = row.int(9)?;
        let (data, custom_data) = (row.opt_text(8)?, row.opt_text(10)?);
        let leased = Leased {
            workspace: line.workspace,
            webhook: line.webhook,
            id: row.parse(0)?,
            lease: String::new(),
            session: String::new(),
            until: now,
            health: line.state.health,
            url: String::new(),
            sealed_secret: None,
            event: row.parse(1)?,
            event_type: row.text(2)?.parse().map_err(Error::corrupt)?,
            sequence: row.opt_int(3)?,
            happened_at: row.time(6)?,
            data: data.map(|data| with_custom_data(data, custom_data)),
            attempts: u32::try_from(row.int(4)?).map_err(Error::corrupt)?,
            log: row.opt_owned(5)?,
            is_test: number == Lane::Test.number(),
        };
        Ok((number, row.time(7)?, leased))
    };
    let params = params![line.workspace, line.webhook, now, limit, line.state.due_from];
    let mut by_lane = Lane::ALL.map(|_| Vec::new());
    for (number, due_at, leased) in tx.query(&sql, params, read).await? {
        let place = usize::try_from(number).map_err(Error::corrupt)?;
        let known = by_lane.get_mut(place).ok_or_else(|| Error::corrupt("an unknown lane"))?;
        known.push((due_at, leased));
    }
    let mut by_lane: Vec<_> = by_lane.map(Vec::into_iter).into();
    let mut others = by_lane.split_off(1);
    let mut taken: Vec<(Timestamp, Leased)> = by_lane.into_iter().flatten().collect();
    // The lane whose first one has waited longer comes first, so that neither waits for the other.
    others.sort_by_key(|lane| lane.as_slice().first().map(|(due, _)| *due));
    while taken.len() < max {
        let before = taken.len();
        taken.extend(others.iter_mut().filter_map(Iterator::next));
        if taken.len() == before {
            break;
        }
    }
    taken.truncate(max);
    Ok(taken.into_iter().map(|(_, one)| one).collect())
}

/// Works out when to look at a line next, of which so much is leased.
async fn schedule(
    tx: &Tx<'_>,
    line: &mut Line,
    held: &Held,
    sends: bool,
    now: Timestamp,
) -> Result<()> {
    let is_full = held.count >= line.state.health.slots as usize;
    let first = first_due(tx, line, is_full, now).await?;
    line.state.due_from = first.all.unwrap_or(line.state.due_from);
    // A line is looked at when a lease ends that nobody has settled and, where its receiver can do
    // with more, when something is due.
    let rest = line.state.health.open_until.unwrap_or(now);
    let others = first.others.filter(|_| sends).map(|at| at.max(rest));
    let wanted = held.first_end.into_iter().chain(first.test).chain(others).min();
    // To look at it once too often costs less than to write down a later time each time, and that in
    // an index.
    let was = line.was_to_be_looked_at().filter(|&was| was > now);
    line.state.next_at = match (was, wanted) {
        (Some(was), Some(wanted)) => Some(was.min(wanted)),
        (was, wanted) => was.or(wanted),
    };
    Ok(())
}

/// When the first deliveries of a line are due.
struct FirstDue {
    /// Of all that wait, leased or not.
    all: Option<Timestamp>,
    /// Of samples that are not leased.
    test: Option<Timestamp>,
    /// Of what else is not leased.
    others: Option<Timestamp>,
}

/// Looks when the first deliveries of a line are due; where it is full, not at those that are not leased.
async fn first_due(tx: &Tx<'_>, line: &Line, is_full: bool, now: Timestamp) -> Result<FirstDue> {
    let (workspace, webhook, from) = (line.workspace, line.webhook, line.state.due_from);
    let of_lanes = async |from_param: &str, condition: &str, params: &[Value<'_>]| {
        let of_lane = |lane: Lane| {
            format!(
                "(SELECT d.due_at_ms FROM deliveries d
                  WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND d.status = 'pending'
                      AND d.lane = {} AND d.due_at_ms >= {from_param}{condition}
                  ORDER BY d.due_at_ms LIMIT 1)",
                lane.number()
            )
        };
        let [test, fresh, retry] = Lane::ALL.map(of_lane);
        let read = |row: &Row<'_>| Ok((row.opt_time(0)?, [row.opt_time(1)?, row.opt_time(2)?]));
        let (test, others) =
            tx.get(&format!("SELECT {test}, {fresh}, {retry}"), params, read).await?;
        Ok::<_, Error>((test, others.into_iter().flatten().min()))
    };
    let all = async {
        let (test, others) = of_lanes("?3", "", params![workspace, webhook, from]).await?;
        Ok(test.into_iter().chain(others).min())
    };
    let free = async {
        if is_full {
            return Ok((None, None));
        }
        let condition = format!(" AND {NOT_LEASED}");
        of_lanes("?4", &condition, params![workspace, webhook, now, from]).await
    };
    let (all, (test, others)) = try_join(all, free).await?;
    Ok(FirstDue { all, test, others })
}

/// What came of an attempt.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The delivery.
    pub delivery: DeliveryId,
    /// The lease under which it was sent.
    pub lease: String,
    /// Whether it is a sample.
    pub is_test: bool,
    /// What came of it.
    pub outcome: Outcome,
    /// What the delivery does next.
    pub step: Step,
    /// How often it has been attempted by now.
    pub attempts: u32,
    /// What came of each attempt, as JSON.
    pub log: String,
}

/// What the attempts of a webhook mean for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// Whether the last attempt came through.
    pub is_well: bool,
    /// Whether the receiver wants nothing any more.
    pub is_gone: bool,
}

/// Keeps what came of attempts. What somebody else has leased since is left alone. `random` gives
/// numbers from 0 up to 1.
pub async fn settle(
    tx: &WriteTx<'_>,
    lines: &mut Lines,
    settlements: &[Settlement],
    now: Timestamp,
    mut random: impl FnMut() -> f64,
) -> Result<Settled> {
    let mut by_line: BTreeMap<(WorkspaceId, WebhookId), Vec<(&Settlement, f64)>> = BTreeMap::new();
    for one in settlements {
        by_line.entry((one.workspace, one.webhook)).or_default().push((one, random()));
    }
    let counts: Vec<usize> = by_line.values().map(Vec::len).collect();
    let left: Vec<&Settlement> = by_line.values().flatten().map(|(one, _)| *one).collect();
    let mut works = Vec::new();
    for ((workspace, webhook), settlements) in by_line {
        let known = lines.get(workspace, webhook).cloned();
        works.push(async move {
            let line = match known {
                Some(line) => Some(line),
                None => lock_line(tx, workspace, webhook).await?,
            };
            match line {
                Some(line) => settle_line(tx, line, settlements, now).await.map(Some),
                None => Ok(None),
            }
        });
    }
    let done = while_not_in_the_way(tx, works).await?;
    let left = left.into_iter().skip(counts.iter().take(done.len()).sum()).cloned().collect();
    let mut settled = Settled { kept: 0, verdicts: Vec::new(), left };
    for (line, kept, verdict) in done.into_iter().flatten() {
        lines.put(line);
        settled.kept += kept;
        settled.verdicts.extend(verdict);
    }
    Ok(settled)
}

/// What was done with what came of attempts.
#[derive(Debug)]
pub struct Settled {
    /// How many were kept.
    pub kept: usize,
    /// What it means for webhooks that fail, or did until now.
    pub verdicts: Vec<Verdict>,
    /// What is still to be kept, as others waited.
    pub left: Vec<Settlement>,
}

/// How many lines are worked on at once where that saves round trips and others wait.
const LINES_AT_ONCE: usize = 8;

/// Does one thing after the other, the first one in any case and the others while that is in nobody's
/// way. Where it saves round trips, it does a few at a time.
async fn while_not_in_the_way<T>(
    tx: &WriteTx<'_>,
    works: Vec<impl Future<Output = Result<T>>>,
) -> Result<Vec<T>> {
    let at_once = match (tx.has_other_writers(), tx.is_crowded()) {
        (false, _) => 1,
        (true, false) => usize::MAX,
        (true, true) => LINES_AT_ONCE,
    };
    let (mut done, mut works) = (Vec::new(), works.into_iter());
    loop {
        let next: Vec<_> = works.by_ref().take(at_once).collect();
        if next.is_empty() {
            return Ok(done);
        }
        done.extend(try_join_all(next).await?);
        if tx.is_in_the_way() {
            return Ok(done);
        }
    }
}

/// Keeps what came of the attempts of one line, each with a random number; says how many were kept.
async fn settle_line(
    tx: &WriteTx<'_>,
    mut line: Line,
    settlements: Vec<(&Settlement, f64)>,
    now: Timestamp,
) -> Result<(Line, usize, Option<Verdict>)> {
    let (workspace, webhook) = (line.workspace, line.webhook);
    let mut params = vec![Value::from(workspace), Value::from(webhook)];
    let ids = settlements.iter().map(|(one, _)| one.delivery);
    let listed = in_list("delivery_id", ids, &mut params);
    let sql = format!(
        "SELECT delivery_id, lease FROM delivery_leases
         WHERE workspace_id = ?1 AND webhook_id = ?2{listed}"
    );
    let read = |row: &Row<'_>| Ok((row.parse::<DeliveryId>(0)?, row.text(1)?.to_owned()));
    let held = tx.query(&sql, &params, read).await?;
    let mut rows: Vec<Vec<Value<'_>>> = Vec::new();
    let mut ended: Vec<DeliveryId> = Vec::new();
    let mut ends: Vec<bool> = Vec::new();
    let mut verdict: Option<Verdict> = None;
    let mut has_failed = line.state.health.is_failing();
    for (one, random) in settlements {
        let is_held =
            |(id, lease): &(DeliveryId, String)| *id == one.delivery && *lease == one.lease;
        if !held.iter().any(is_held) || ended.contains(&one.delivery) {
            continue;
        }
        ended.push(one.delivery);
        let (status, due) = match one.step {
            Step::Delivered => (Status::Delivered, now),
            Step::Failed => (Status::Failed, now),
            Step::Retry(due) => {
                line.waits_from(due);
                (Status::Pending, due)
            }
        };
        ends.push(status != Status::Pending);
        rows.push(
            params![
                workspace,
                one.delivery,
                status.as_str(),
                due,
                i64::from(one.attempts),
                &one.log,
                if one.is_test { Lane::Test } else { Lane::Retry }.number()
            ]
            .to_vec(),
        );
        let is_well = one.outcome == Outcome::Taken;
        // A sample may show that the receiver is well again, and never that it is not.
        if is_well || !one.is_test {
            line.state.health = line.state.health.after(one.outcome, now, random);
            has_failed |= !is_well;
            let was_gone = verdict.is_some_and(|verdict| verdict.is_gone);
            let is_gone = was_gone || one.outcome == Outcome::Gone;
            verdict = Some(Verdict { workspace, webhook, is_well, is_gone });
        }
    }
    if ended.is_empty() {
        return Ok((line, 0, None));
    }
    let mut params = vec![Value::from(workspace), Value::from(webhook)];
    let listed = in_list("delivery_id", ended.iter().copied(), &mut params);
    let sql =
        format!("DELETE FROM delivery_leases WHERE workspace_id = ?1 AND webhook_id = ?2{listed}");
    tx.execute(&sql, &params).await?;
    let sql =
        "UPDATE deliveries SET status = ?3, due_at_ms = ?4, attempts = ?5, log = ?6, lane = ?7
         WHERE workspace_id = ?1 AND id = ?2";
    let kept = tx.execute_each_counting(sql, &rows).await?;
    // One that was forgotten meanwhile does not wait any more as it is.
    let no_longer = ends.iter().zip(kept).filter(|(ends, kept)| **ends && *kept > 0).count();
    line.state.pending -= i64::try_from(no_longer).unwrap_or_default();
    line.state.next_at = Some(now);
    Ok((line, ended.len(), verdict.filter(|_| has_failed)))
}

/// Gives back what was leased and not sent.
pub async fn release(tx: &WriteTx<'_>, leased: &[Leased], now: Timestamp) -> Result<()> {
    let mut by_line: BTreeMap<(WorkspaceId, WebhookId), Vec<&Leased>> = BTreeMap::new();
    for one in leased {
        by_line.entry((one.workspace, one.webhook)).or_default().push(one);
    }
    for ((workspace, webhook), leased) in by_line {
        let Some(mut line) = lock_line(tx, workspace, webhook).await? else { continue };
        let rows: Vec<Vec<Value<'_>>> = leased
            .iter()
            .map(|one| params![workspace, webhook, one.id, &one.lease].to_vec())
            .collect();
        tx.execute_each(
            "DELETE FROM delivery_leases WHERE workspace_id = ?1 AND webhook_id = ?2
                AND delivery_id = ?3 AND lease = ?4",
            &rows,
        )
        .await?;
        line.state.next_at = Some(now);
        line.save(tx).await?;
    }
    Ok(())
}

/// Whether there is something to do by `now`: matches to expand, recoveries, or a line to look at.
pub async fn has_work(tx: &Tx<'_>, front: &Front, now: Timestamp) -> Result<bool> {
    let from = front.next(tx);
    let sql = "SELECT EXISTS (SELECT 1 FROM event_matches WHERE id >= ?2)
            OR EXISTS (SELECT 1 FROM webhook_recoveries)
            OR EXISTS (SELECT 1 FROM webhook_queues WHERE next_at_ms <= ?1)";
    let has_work = tx.get(sql, params![now, from], |row| row.bool(0)).await?;
    if !has_work {
        front.found_nothing(from);
    }
    Ok(has_work)
}

/// Adds a sample of a webhook's event, to be sent at once.
pub async fn add_test(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    id: DeliveryId,
    event: (EventId, EventType),
    data: &str,
    now: Timestamp,
) -> Result<()> {
    let Some(mut line) = lock_line(tx, workspace, webhook).await? else { return Ok(()) };
    let (event, event_type) = event;
    tx.execute(
        "INSERT INTO deliveries (workspace_id, id, webhook_id, event_id, event_type, data, status,
            lane, due_at_ms, attempts, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?9)",
        params![
            workspace,
            id,
            webhook,
            event,
            event_type.as_str(),
            data,
            Status::Pending.as_str(),
            Lane::Test.number(),
            now
        ],
    )
    .await?;
    line.state.pending += 1;
    line.waits_from(now);
    line.state.next_at = Some(now);
    line.save(tx).await?;
    tx.announce();
    Ok(())
}

/// Has a delivery sent again from the beginning of its schedule, unless it is being sent.
pub async fn send_again(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    ids: &[DeliveryId],
    now: Timestamp,
) -> Result<()> {
    let Some(mut line) = lock_line(tx, workspace, webhook).await? else { return Ok(()) };
    let sql = format!(
        "UPDATE deliveries AS d SET lane = CASE d.lane WHEN 0 THEN 0 ELSE ?4 END, due_at_ms = ?3,
            attempts = 0, status = 'pending'
         WHERE d.workspace_id = ?1 AND d.id = ?2 AND d.status {{}} 'pending' AND {NOT_LEASED}"
    );
    // Those that wait already are not counted again.
    let rows: Vec<Vec<Value<'_>>> =
        ids.iter().map(|id| params![workspace, *id, now, Lane::Retry.number()].to_vec()).collect();
    tx.execute_each(&sql.replace("{}", "="), &rows).await?;
    let woken: u64 = tx.execute_each_counting(&sql.replace("{}", "<>"), &rows).await?.iter().sum();
    line.state.pending += i64::try_from(woken).unwrap_or_default();
    line.waits_from(now);
    // Somebody thinks that the receiver is well again.
    line.state.health.open_until = None;
    line.state.next_at = Some(now);
    line.save(tx).await?;
    tx.announce();
    Ok(())
}

/// Sends all deliveries of a webhook again that failed or wait for their next attempt, were made since
/// a point in time and up to `last`: a few at a time.
pub async fn recover(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    since: Timestamp,
    last: DeliveryId,
) -> Result<()> {
    tx.execute(
        "INSERT INTO webhook_recoveries (workspace_id, webhook_id, since_ms, done_id, last_id)
         VALUES (?1, ?2, ?3, '', ?4)
         ON CONFLICT (workspace_id, webhook_id) DO UPDATE SET since_ms = excluded.since_ms,
            done_id = excluded.done_id, last_id = excluded.last_id",
        params![workspace, webhook, since, last],
    )
    .await?;
    tx.announce();
    Ok(())
}

/// The recovered deliveries that may be due before more are added to them.
const RECOVERED_DUE_MAX: i64 = 1_000;

/// The deliveries that are recovered in one transaction.
const RECOVERED_MAX: usize = 200;

/// Deliveries `d` that an attempt failed of and that wait for the next one.
const WAITS_FOR_RETRY: &str = "d.status = 'pending' AND d.attempts > 0";

/// Deliveries that are to be sent again.
#[derive(Debug)]
struct Recovery {
    workspace: WorkspaceId,
    webhook: WebhookId,
    since: Timestamp,
    done: String,
    last: String,
}

async fn recoveries(tx: &WriteTx<'_>) -> Result<Vec<Recovery>> {
    let lock = tx.for_update_skip_locked();
    let sql = format!(
        "SELECT workspace_id, webhook_id, since_ms, done_id, last_id FROM webhook_recoveries
         ORDER BY workspace_id, webhook_id LIMIT 16{lock}"
    );
    let read = |row: &Row<'_>| {
        Ok(Recovery {
            workspace: row.parse(0)?,
            webhook: row.parse(1)?,
            since: row.time(2)?,
            done: row.text(3)?.to_owned(),
            last: row.text(4)?.to_owned(),
        })
    };
    tx.query(&sql, &[], read).await
}

/// Goes on with what [`recover`] began, where the receivers keep up with it.
pub async fn go_on_recovering(tx: &WriteTx<'_>, lines: &mut Lines, now: Timestamp) -> Result<()> {
    let recoveries = match lines.recoveries_ahead() {
        Some(ahead) => ahead,
        None => recoveries(tx).await?,
    };
    if !recoveries.is_empty() {
        lines.save_for_now(tx).await?;
    }
    for Recovery { workspace, webhook, since, done, last } in recoveries {
        lock_line(tx, workspace, webhook).await?;
        if recovered_due(tx, workspace, webhook, now).await? > RECOVERED_DUE_MAX {
            continue;
        }
        let limit = i64::try_from(RECOVERED_MAX).unwrap_or(i64::MAX);
        let of = |condition: &str| {
            format!(
                "SELECT d.id FROM deliveries d
                 WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND {condition} AND d.id > ?3
                    AND d.id <= ?4 AND d.created_at_ms >= ?5"
            )
        };
        let sql = format!(
            "SELECT * FROM ({} UNION ALL {}) recovered ORDER BY id LIMIT ?6",
            of("d.status = 'failed'"),
            of(WAITS_FOR_RETRY)
        );
        let params = params![workspace, webhook, &done, &last, since, limit];
        let found = tx.query(&sql, params, |row| row.parse::<DeliveryId>(0)).await?;
        send_again(tx, workspace, webhook, &found, now).await?;
        match found.last() {
            Some(last) if found.len() == RECOVERED_MAX => {
                tx.execute(
                    "UPDATE webhook_recoveries SET done_id = ?3
                     WHERE workspace_id = ?1 AND webhook_id = ?2",
                    params![workspace, webhook, *last],
                )
                .await?;
            }
            _ => {
                let sql =
                    "DELETE FROM webhook_recoveries WHERE workspace_id = ?1 AND webhook_id = ?2";
                tx.execute(sql, params![workspace, webhook]).await?;
            }
        }
    }
    Ok(())
}

/// Counts the deliveries of a webhook that are due for another attempt, up to one more than
/// [`RECOVERED_DUE_MAX`]. Those that wait for a later time don't count.
async fn recovered_due(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    now: Timestamp,
) -> Result<i64> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM deliveries
        WHERE workspace_id = ?1 AND webhook_id = ?2 AND status = 'pending' AND lane = ?3
            AND due_at_ms <= ?4 LIMIT ?5) due";
    let params = params![workspace, webhook, Lane::Retry.number(), now, RECOVERED_DUE_MAX + 1];
    tx.get(sql, params, |row| row.int(0)).await
}

/// A delivery, as the interface shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Which one.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The event.
    pub event: EventId,
    /// The event as the webhook sees it.
    pub event_type: String,
    /// The event's number; none of a sample.
    pub sequence: Option<i64>,
    /// How far it has come.
    pub status: Status,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it is attempted next, if it is to be.
    pub next_attempt_at: Option<Timestamp>,
    /// What came of each attempt, as JSON.
    pub log: Option<String>,
}

/// Which deliveries a list has.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Only this webhook's.
    pub webhook: Option<WebhookId>,
    /// Only those that have come so far.
    pub status: Option<Status>,
    /// Only this event's.
    pub event: Option<EventId>,
    /// Only of webhooks on groups in the subtree of one of these; `None`: all.
    pub within: Option<Vec<ContentGroupId>>,
    /// Made before the one with this id.
    pub before: Option<String>,
    /// At most so many.
    pub limit: i64,
    /// Without the first so many.
    pub offset: i64,
}

/// Lists deliveries, the latest first.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, query: &ListQuery) -> Result<Vec<Delivery>> {
    let mut params = vec![Value::from(workspace), query.limit.into(), query.offset.into()];
    let mut filter = webhooks::within_filter(query.within.as_deref(), &mut params);
    let mut only = |condition: &str, value: Value<'static>| {
        params.push(value);
        filter.push_str(&format!(" AND {condition} ?{}", params.len()));
    };
    if let Some(webhook) = query.webhook {
        only("d.webhook_id =", webhook.into());
    }
    if let Some(event) = query.event {
        only("d.event_id =", event.into());
    }
    if let Some(before) = &query.before {
        only("d.id <", before.clone().into());
    }
    let is_sent = format!("({SENDS} OR d.lane = 0)");
    filter.push_str(&match query.status {
        None => String::new(),
        Some(Status::Pending) => format!(" AND d.status = 'pending' AND {is_sent}"),
        Some(Status::Held) => format!(" AND d.status = 'pending' AND NOT {is_sent}"),
        Some(Status::Delivered) => " AND d.status = 'delivered'".to_owned(),
        Some(Status::Failed) => " AND d.status = 'failed'".to_owned(),
    });
    let sql = format!(
        "SELECT d.id, d.webhook_id, d.event_id, d.event_type, d.sequence, d.status,
            d.created_at_ms, d.due_at_ms, d.log, {is_sent}
         FROM deliveries d
         JOIN webhooks h ON h.workspace_id = d.workspace_id AND h.id = d.webhook_id
         WHERE d.workspace_id = ?1{filter} ORDER BY d.id DESC LIMIT ?2 OFFSET ?3"
    );
    tx.query(&sql, &params, |row| {
        let status: Status = row.text(5)?.parse().map_err(Error::corrupt)?;
        let is_held = status == Status::Pending && !row.bool(9)?;
        let status = if is_held { Status::Held } else { status };
        Ok(Delivery {
            id: row.parse(0)?,
            webhook: row.parse(1)?,
            event: row.parse(2)?,
            event_type: row.text(3)?.to_owned(),
            sequence: row.opt_int(4)?,
            status,
            created_at: row.time(6)?,
            next_attempt_at: Some(row.time(7)?).filter(|_| status == Status::Pending),
            log: row.opt_owned(8)?,
        })
    })
    .await
}

/// Some of a webhook's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that are sent sooner or later as things stand, or would be if the webhook were enabled.
    ToBeSent,
    /// Those that failed or wait for their next attempt, and were made at this time or later.
    RecoverableSince(Timestamp),
    /// This one.
    One(DeliveryId),
}

/// What deliveries show: each event as the webhook sees it, and what happened where. Nothing comes twice; samples
/// are left out, and what isn't kept any more.
pub async fn list_shown(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    which: Which,
) -> Result<Vec<(EventType, Occurrence)>> {
    let of_deliveries = |condition: &str| {
        format!(
            "SELECT d.event_type, e.type, e.path_before, e.path_after FROM deliveries d
             JOIN events e ON e.workspace_id = d.workspace_id AND e.sequence = d.sequence
             WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND {condition}"
        )
    };
    let mut params = vec![Value::from(workspace), Value::from(webhook)];
    let sql = match which {
        Which::ToBeSent => {
            params.push(format!("%{webhook}%").into());
            [
                of_deliveries("d.status = 'pending'"),
                of_deliveries(
                    "d.status = 'failed' AND EXISTS (SELECT 1 FROM webhook_recoveries r
                        WHERE r.workspace_id = ?1 AND r.webhook_id = ?2 AND d.id > r.done_id
                            AND d.id <= r.last_id AND d.created_at_ms >= r.since_ms)",
                ),
                "SELECT m.event_type, e.type, e.path_before, e.path_after FROM event_matches m
                 JOIN events e ON e.workspace_id = m.workspace_id
                    AND e.sequence >= m.first_sequence AND e.sequence <= m.last_sequence
                 WHERE m.workspace_id = ?1 AND m.webhook_ids LIKE ?3"
                    .to_owned(),
            ]
            .join(" UNION ")
        }
        Which::RecoverableSince(since) => {
            params.push(since.into());
            of_deliveries(&format!(
                "(d.status = 'failed' OR {WAITS_FOR_RETRY}) AND d.created_at_ms >= ?3"
            ))
        }
        Which::One(id) => {
            params.push(id.into());
            of_deliveries("d.id = ?3")
        }
    };
    let sql =
        format!("SELECT DISTINCT event_type, type, path_before, path_after FROM ({sql}) AS shown");
    tx.query(&sql, &params, |row| {
        let path = |column| Ok::<_, Error>(row.opt_parse_list(column)?.map(GroupPath::new));
        let happened = row.text(1)?.parse().map_err(Error::corrupt)?;
        let occurrence = Occurrence::of(happened, path(2)?, path(3)?);
        let occurrence = occurrence.ok_or_else(|| Error::corrupt("an event without its place"))?;
        Ok((row.text(0)?.parse().map_err(Error::corrupt)?, occurrence))
    })
    .await
}

/// The webhook of a delivery.
pub async fn find_webhook(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<WebhookId>> {
    let sql = "SELECT webhook_id FROM deliveries WHERE workspace_id = ?1 AND id = ?2";
    tx.find(sql, params![workspace, id], |row| row.parse(0)).await
}

/// Forgets deliveries that were made before `before`, at most so many; says how many.
pub async fn forget(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    // Ids sort in the order in which they were made.
    let old = tx
        .query(
            "SELECT id, webhook_id, status FROM (
                SELECT id, webhook_id, status, created_at_ms FROM deliveries
                WHERE workspace_id = ?1 ORDER BY id LIMIT ?3) d
             WHERE created_at_ms < ?2",
            params![workspace, before, limit],
            |row| Ok((row.parse(0)?, row.parse(1)?, row.text(2)? == "pending")),
        )
        .await?;
    forget_these(tx, workspace, &old).await
}

/// Forgets deliveries of webhooks that were deleted, at most so many; says how many.
pub async fn forget_orphans(tx: &WriteTx<'_>, limit: i64) -> Result<u64> {
    let orphans = tx
        .query(
            "SELECT q.workspace_id, q.webhook_id FROM webhook_queues q
             WHERE NOT EXISTS (SELECT 1 FROM webhooks h
                WHERE h.workspace_id = q.workspace_id AND h.id = q.webhook_id)
             LIMIT 16",
            &[],
            |row| Ok((row.parse::<WorkspaceId>(0)?, row.parse::<WebhookId>(1)?)),
        )
        .await?;
    let mut forgotten = 0;
    for (workspace, webhook) in orphans {
        let left = tx
            .query(
                "SELECT id FROM deliveries WHERE workspace_id = ?1 AND webhook_id = ?2 LIMIT ?3",
                params![workspace, webhook, limit],
                |row| Ok((row.parse(0)?, webhook, false)),
            )
            .await?;
        if left.is_empty() {
            for table in ["delivery_leases", "webhook_recoveries", "webhook_queues"] {
                let sql =
                    format!("DELETE FROM {table} WHERE workspace_id = ?1 AND webhook_id = ?2");
                forgotten += tx.execute(&sql, params![workspace, webhook]).await?;
            }
            continue;
        }
        forgotten += forget_these(tx, workspace, &left).await?;
        break;
    }
    Ok(forgotten)
}

async fn forget_these(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    deliveries: &[(DeliveryId, WebhookId, bool)],
) -> Result<u64> {
    let mut waited: BTreeMap<WebhookId, i64> = BTreeMap::new();
    for (_, webhook, _) in deliveries.iter().filter(|(_, _, is_pending)| *is_pending) {
        *waited.entry(*webhook).or_default() += 1;
    }
    for (webhook, count) in waited {
        if let Some(mut line) = lock_line(tx, workspace, webhook).await? {
            line.state.pending -= count;
            line.save(tx).await?;
            webhooks::count_dropped(tx, workspace, webhook, count).await?;
        }
    }
    let leases: Vec<Vec<Value<'_>>> = deliveries
        .iter()
        .map(|(id, webhook, _)| params![workspace, *webhook, *id].to_vec())
        .collect();
    let sql = "DELETE FROM delivery_leases
        WHERE workspace_id = ?1 AND webhook_id = ?2 AND delivery_id = ?3";
    tx.execute_each(sql, &leases).await?;
    let rows: Vec<Vec<Value<'_>>> =
        deliveries.iter().map(|(id, ..)| params![workspace, *id].to_vec()).collect();
    let sql = "DELETE FROM deliveries WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.execute_each_counting(sql, &rows).await?.iter().sum())
}

/// What the lines are like, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauges {
    /// Deliveries of enabled webhooks that wait.
    pub pending: i64,
    /// Deliveries of disabled webhooks.
    pub held: i64,
    /// When the line that has waited longest was to be looked at.
    pub next_at: Option<Timestamp>,
    /// Webhooks whose receivers are left alone for a while.
    pub open: i64,
}

/// Measures the lines.
pub async fn gauges(tx: &Tx<'_>, now: Timestamp) -> Result<Gauges> {
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN {SENDS} THEN q.pending ELSE 0 END), 0) AS BIGINT),
            CAST(COALESCE(SUM(CASE WHEN {SENDS} THEN 0 ELSE q.pending END), 0) AS BIGINT),
            MIN(q.next_at_ms),
            COALESCE(SUM(CASE WHEN q.open_until_ms > ?1 THEN 1 ELSE 0 END), 0)
         FROM webhook_queues q
         JOIN webhooks h ON h.workspace_id = q.workspace_id AND h.id = q.webhook_id"
    );
    tx.get(&sql, params![now], |row| {
        Ok(Gauges {
            pending: row.int(0)?,
            held: row.int(1)?,
            next_at: row.opt_time(2)?,
            open: row.int(3)?,
        })
    })
    .await
}
