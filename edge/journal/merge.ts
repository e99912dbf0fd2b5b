import { binSubject, cabinetSubject, fridgeSubject, rowSubject } from '../../protocol/model/subject.ts'
import type { HubEntry, State } from '../../protocol/mqtt/hub-entries.ts'

/**
 * The subject of an entry that reports a state. A later entry with the same key replaces an earlier one that
 * was never sent. Undefined for entries that always count: drops, counts, orders, operations, actions of
 * people.
 */
export function mergeKey(entry: HubEntry): string | undefined {
  if (entry.kind === 'state') return stateKey(entry.state)
  return entry.kind === 'alarm' ? `alarm ${entry.code} ${entry.subject}` : undefined
}

function stateKey(state: State): string {
  switch (state.of) {
    case 'row':
      return rowSubject(state.location)
    case 'bin':
      return binSubject(state.bin)
    case 'cabinet':
      return cabinetSubject(state.cabinet)
    case 'fridge':
      return fridgeSubject(state.fridge)
  }
}

/**
 * The entry that the new entry replaces: the newest entry of its key. A repeated alarm keeps its first entry,
 * because that entry contains the start of the incident. `waiting`: entries that have never been sent, newest
 * first.
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
