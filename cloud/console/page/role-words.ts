import type { Person } from '../../../protocol/contract/owner-people.ts'
import type { RoleName } from '../../../protocol/model/scopes.ts'

/** `hubs 1, 2`, or `every hub`. */
export const hubWords = (hubs: Readonly<Person['hubs']>): string =>
  hubs === '*' ? 'every hub' : `${hubs.length === 1 ? 'hub' : 'hubs'} ${hubs.join(', ')}`

/** Short enough for a list of choices on a telephone. */
export const roleChoices: Readonly<Record<RoleName, string>> = {
  owner: 'Owner: everything',
  technician: 'Technician: no sales, no refunds',
  analyst: 'Analyst: only reads',
}

export const roleWords: Readonly<Record<RoleName, string>> = {
  owner: 'Owner: everything',
  technician: 'Technician: hubs, controls and maintenance; no sales, no refunds',
  analyst: 'Analyst: reads everything, changes nothing',
}
