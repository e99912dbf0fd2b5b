import type { Person } from '../../../protocol/contract/owner-people.ts'
import type { RoleName, Scope } from '../../../protocol/model/scopes.ts'

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

/** The rights of keys in plain words. */
export const scopeWords: Readonly<Record<Scope, string>> = {
  'inventory:read': 'Read products and stock',
  'inventory:write': 'Change products, prices and stock',
  'orders:read': 'Read orders and payments',
  'orders:write': 'Cancel and refund orders',
  'analytics:read': 'Read sales and reports',
  'hubs:read': 'Read hubs and their state',
  'hubs:write': 'Change hubs',
  'controls:read': 'Read bins, fridges and doors',
  'controls:write': 'Operate bins, fridges and doors',
  'maintenance:read': 'Read maintenance reports',
  'maintenance:write': 'File maintenance reports',
  'promotions:read': 'Read deals and banners',
  'promotions:write': 'Change deals and banners',
  'events:read': 'Read events and webhooks',
  'events:write': 'Change webhooks',
  'people:read': 'Read people, contacts and keys',
  'people:write': 'Change people, contacts and keys',
  'diag:read': 'Read diagnostics',
  'diag:write': 'Run background tasks',
}
