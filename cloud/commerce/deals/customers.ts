import type { Selectable } from 'kysely'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { textsIn } from '../../platform/store/recordset.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/sealer.ts'

/** Columns that identify a person: two users who share a value are one customer. */
type Traits = Pick<
  Selectable<Tables['users']>,
  'identity' | 'email' | 'email_verified' | 'phone_number' | 'phone_verified' | 'device_uuid'
>

const traitColumns = [
  'identity',
  'email',
  'email_verified',
  'phone_number',
  'phone_verified',
  'device_uuid',
] as const

const deviceMark = (sealer: Sealer, device: string): string =>
  sealer.digest('customer mark', `device ${device}`)

/** Digests of a user's identity, verified contacts and device. Computing them needs the store's secret. */
function marksOf(sealer: Sealer, user: Traits): string[] {
  const traits = [
    user.identity !== null && `identity ${user.identity}`,
    user.email_verified === 1 && user.email !== null && `email ${user.email}`,
    user.phone_verified === 1 && user.phone_number !== null && `phone ${user.phone_number}`,
  ].filter((trait) => trait !== false)
  return [
    ...traits.map((trait) => sealer.digest('customer mark', trait)),
    ...(user.device_uuid === null ? [] : [deviceMark(sealer, user.device_uuid)]),
  ]
}

/**
 * Stores the marks of a customer. They survive the account's deletion, so that limits of deals hold for a person who
 * returns. Call it when a trait is set, and before the traits are deleted.
 */
export async function rememberCustomer(
  tx: Tx,
  { sealer, runtime }: CloudContext,
  user: Traits & { id: number },
): Promise<void> {
  const marks = marksOf(sealer, user)
  if (marks.length === 0) return
  const now = runtime.clock.now()
  await tx.q
    .insertInto('customer_marks')
    .values(marks.map((mark) => ({ mark, user_id: user.id, created_at: now })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** The owner of a cart, as far as the caller knows. */
export interface Shopper {
  userId: number | null
  deviceUuid: string | null
  /** The cart is an order to be paid: it uses the pending redemptions of its user. */
  takesUp: boolean
}

/** A shopper with all users that are the same person. */
export interface Customer extends Shopper {
  /** A guest is not identified: another guest may be the same person. */
  isAnonymous: boolean
  /** Users with the same identity, verified contact or device, including the shopper. */
  userIds: number[]
  /** Devices of the shopper: the device of the cart and the device of the user. */
  devices: string[]
  /** Users of these devices. */
  userIdsOfDevices: number[]
}

export const nobody: Customer = {
  userId: null,
  deviceUuid: null,
  takesUp: false,
  isAnonymous: false,
  userIds: [],
  devices: [],
  userIdsOfDevices: [],
}

/** Finds the users who are the same person as a shopper. */
export async function recognise(q: Queries, { sealer }: CloudContext, shopper: Shopper): Promise<Customer> {
  const { userId, deviceUuid } = shopper
  const user =
    userId === null
      ? undefined
      : await q
          .selectFrom('users')
          .select([...traitColumns, 'is_anonymous'])
          .where('id', '=', userId)
          .executeTakeFirst()
  const devices = [...new Set([deviceUuid, user?.device_uuid ?? null].filter((device) => device !== null))]
  const deviceMarks = devices.map((device) => deviceMark(sealer, device))
  const own = userId === null ? [] : [userId]
  const stored =
    userId === null
      ? []
      : await q.selectFrom('customer_marks').select('mark').where('user_id', '=', userId).execute()
  const marks = new Set([
    ...(user ? marksOf(sealer, user) : []),
    ...deviceMarks,
    ...stored.map((one) => one.mark),
  ])
  const others =
    marks.size === 0
      ? []
      : await q
          .selectFrom('customer_marks')
          .select(['user_id', 'mark'])
          .where('mark', 'in', textsIn(q, [...marks]))
          .execute()
  const ofDevices = others.filter(({ mark }) => deviceMarks.includes(mark))
  const unique = (rows: readonly { user_id: number }[]): number[] => [
    ...new Set([...own, ...rows.map((row) => row.user_id)]),
  ]
  return {
    ...shopper,
    isAnonymous: user?.is_anonymous === 1,
    userIds: unique(others),
    devices,
    userIdsOfDevices: devices.length === 0 ? [] : unique(ofDevices),
  }
}
