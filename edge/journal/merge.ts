import { locationKey } from '../../protocol/model/location.ts'
import type { HubEntry, State } from '../../protocol/mqtt/hub-entries.ts'

/**
 * What an entry says the state of: a later entry with the same key replaces an earlier one that has never been sent. Undefined
 * for entries of which each counts (drops, counts, orders, operations, acts of people).
 */
export function mergeKey(entry: HubEntry): string | undefined {
  if (entry.kind === 'state') return stateKey(entry.state)
  return entry.kind === 'alarm' ? `alarm ${entry.code} ${entry.subject}` : undefined
}

function stateKey(state: State): string {
  switch (state.of) {
    case 'row':
      return `row ${locationKey(state.location)}`
    case 'bin':
      return `bin ${state.bin}`
    case 'cabinet':
      return `cabinet ${state.cabinet}`
    case 'fridge':
      return `fridge ${state.fridge}`
  }
}

/**
 * The entry that the new one replaces: the newest of its key. Of an alarm that comes and goes the first entry stays, because it
 * contains when the incident began. `waiting`: entries that have never been sent, the newest first.
 */
export function replacedBy<E extends { entry: HubEntry }>(
  waiting: readonly E[],
  entry: HubEntry,
): E | undefined {
  const key = mergeKey(entry)
  if (key === undefined) return undefined
  const [newest, older] = waiting.filter((each) => mergeKey(each.entry) === key)
  if (entry.kind !== 'alarm' || newest?.entry.kind !== 'alarm') return newest
  return older !== undefined && newest.entry.raised !== entry.raised ? newest : undefined
}
