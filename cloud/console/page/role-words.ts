import type { Person } from '../../../protocol/contract/owner-people.ts'
import type { RoleName } from '../../../protocol/model/scopes.ts'

/** `hubs 1, 2`, or `every hub`. */
export const hubWords = (hubs: Readonly<Person['hubs']>): string =>
  hubs === '*' ? 'every hub' : `${hubs.length === 1 ? 'hub' : 'hubs'} ${hubs.join(', ')}`

export const roleWords: Readonly<Record<RoleName, string>> = {
  owner: 'Owner: everything',
  technician: 'Technician: hubs, controls and maintenance; no sales, no refunds',
  analyst: 'Analyst: reads everything, changes nothing',
}
