import type { Selectable, Updateable } from 'kysely'
import type { Profile, ProfilePatch } from '../../../protocol/contract/consumer-profile.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { AddressOf } from '../../platform/media/addresses.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { imageAddress } from './user-view.ts'

export type UserRow = Selectable<Tables['users']>

export function readUser(q: Queries, userId: number): Promise<UserRow> {
  return q.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirstOrThrow()
}

export const viewProfile = (row: UserRow, addressOf: AddressOf): Profile => ({
  user_id: row.id,
  first_name: row.first_name,
  last_name: row.last_name,
  email: row.email,
  phone_number: row.phone_number,
  date_of_birth: row.date_of_birth,
  locale: row.locale,
  profile_image_url: imageAddress(addressOf, row.profile_image_key),
  notifications: {
    push: row.notify_push === 1,
    email: row.notify_email === 1,
    sms: row.notify_sms === 1,
  },
  updated_at: timestamp(row.updated_at),
})

/** Applies a merge patch in one statement: patches of other fields at the same time are all kept. */
export async function patchProfile(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  userId: number,
  patch: ProfilePatch,
): Promise<UserRow> {
  const now = runtime.clock.now()
  requirePast(patch.date_of_birth, now)
  const { notifications, ...fields } = patch
  const changes: Updateable<Tables['users']> = withoutAbsent({ ...fields, ...switches(notifications) })
  if (Object.keys(changes).length === 0) return readUser(db.kysely, userId)
  return db.kysely
    .updateTable('users')
    .set({ ...changes, updated_at: now })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Null is the default: on. */
function switches(patch: ProfilePatch['notifications']) {
  if (patch === undefined) return {}
  const flag = (value: boolean | null | undefined) =>
    value === undefined ? undefined : value === false ? (0 as const) : (1 as const)
  const all = patch ?? { push: null, email: null, sms: null }
  return { notify_push: flag(all.push), notify_email: flag(all.email), notify_sms: flag(all.sms) }
}

const withoutAbsent = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

function requirePast(date: string | null | undefined, now: number): void {
  if (date === undefined || date === null) return
  if (date >= '1900-01-01' && date < timestamp(now).slice(0, 10)) return
  throw new ApiError('validation_error', undefined, undefined, [
    {
      loc: ['body', 'date_of_birth'],
      msg: 'Value error, a date in the past is required',
      type: 'value_error',
      input: date,
    },
  ])
}
