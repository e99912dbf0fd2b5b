import { sql, type Selectable, type Updateable } from 'kysely'
import type {
  HubChoice,
  Profile,
  ProfileImage,
  ProfilePatch,
} from '../../../protocol/contract/consumer-profile.ts'
import type { User } from '../../../protocol/contract/consumer-users.ts'
import type { FormFile } from '../../../protocol/contract/form.ts'
import type { HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { summarizeHub } from '../../operations/hubs/hubs.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { UserCredential } from '../../platform/credentials/credential.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { AddressOf } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import { hubsWithContact } from '../../platform/credentials/hub-access.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { Flag } from '../../platform/store/table.ts'
import { requireHub } from './bootstrap.ts'
import { provenBy, takeProven, takingUnique } from './contacts.ts'
import { registerPush, unregisterPush } from './push-configs.ts'

type ProfileRoutes =
  | 'consumer.profile.get'
  | 'consumer.profile.update'
  | 'consumer.profile.patch'
  | 'consumer.profile.set_image'
  | 'consumer.profile.delete_image'
  | 'consumer.profile.select_hub'
  | 'consumer.profile.unselect_hub'
  | 'consumer.profile.default_hub'
  | 'consumer.profile.register_push'
  | 'consumer.profile.unregister_push'

/** C §4.3: a user's details, hubs and devices. */
export function profileHandlers(context: CloudContext, media: Media): Handlers<ProfileRoutes> {
  const addressOf = (key: string): string => media.addressOf(key)
  const patch = async (caller: UserCredential, body: ProfilePatch) =>
    viewProfile(await patchProfile(context, caller, body), addressOf)
  return {
    async 'consumer.profile.get'({ credential }) {
      return viewProfile(await readUser(context.db.kysely, credential.userId), addressOf)
    },
    'consumer.profile.update': ({ credential, body }) => patch(credential, body),
    'consumer.profile.patch': ({ credential, body }) => patch(credential, body),
    'consumer.profile.set_image': ({ credential, form }) =>
      setProfileImage(context, media, credential.userId, form.files[0]!),
    async 'consumer.profile.delete_image'({ credential }) {
      await deleteProfileImage(context, media, credential.userId)
    },
    'consumer.profile.select_hub': ({ credential, params }) =>
      chooseHub(context, credential.userId, { selected_hub_id: params.hub_id }),
    async 'consumer.profile.unselect_hub'({ credential, params }) {
      await unselectHub(context, credential.userId, params.hub_id)
    },
    'consumer.profile.default_hub': ({ credential, body }) =>
      chooseHub(context, credential.userId, { default_hub_id: body.hub_id }),
    'consumer.profile.register_push': ({ credential, body }) =>
      registerPush(context, credential.userId, body),
    async 'consumer.profile.unregister_push'({ credential, query }) {
      return { deleted: await unregisterPush(context, credential.userId, query.device_id) }
    },
  }
}

export type UserRow = Selectable<Tables['users']>

export function readUser(q: Queries, userId: number): Promise<UserRow> {
  return q.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirstOrThrow()
}

const viewProfile = (row: UserRow, addressOf: AddressOf): Profile => ({
  user_id: row.id,
  first_name: row.first_name,
  last_name: row.last_name,
  ...shownContacts(row),
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

const shownContacts = (row: UserRow) => ({
  email: row.email,
  email_verified: row.email_verified === 1,
  phone_number: row.phone_number,
  phone_verified: row.phone_verified === 1,
})

/** Applies a merge patch in one statement, so that simultaneous patches of other fields are preserved. */
async function patchProfile(
  context: CloudContext,
  { userId, claims }: UserCredential,
  patch: ProfilePatch,
): Promise<UserRow> {
  const now = context.runtime.clock.now()
  requirePast(patch.date_of_birth, now)
  const { notifications, ...fields } = patch
  const changes: Updateable<Tables['users']> = withoutAbsent({ ...fields, ...switches(notifications) })
  if (Object.keys(changes).length === 0) return readUser(context.db.kysely, userId)
  const named = { email: patch.email ?? null, phone_number: patch.phone_number ?? null }
  return takingUnique(context, async (tx) => {
    await lockUser(tx, userId)
    const { email_verified, phone_verified } = await takeProven(tx, context, named, provenBy(claims), userId)
    const user = await tx.q
      .updateTable('users')
      .set({ ...changes, updated_at: now })
      .$if(patch.email !== undefined, (users) =>
        users.set({ email_verified: email_verified || stillVerified('email', named.email) }),
      )
      .$if(patch.phone_number !== undefined, (users) =>
        users.set({ phone_verified: phone_verified || stillVerified('phone', named.phone_number) }),
      )
      .where('id', '=', userId)
      .returningAll()
      .executeTakeFirstOrThrow()
    await rememberCustomer(tx, context, user)
    return user
  })
}

/** An unchanged contact keeps its verification. */
const stillVerified = (contact: 'email' | 'phone', value: string | null) =>
  contact === 'email'
    ? sql<Flag>`case when email = ${value} then email_verified else 0 end`
    : sql<Flag>`case when phone_number = ${value} then phone_verified else 0 end`

/** Null means the default: on. */
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
  throw ApiError.invalid({
    loc: ['body', 'date_of_birth'],
    msg: 'Value error, a date from 1900 on and in the past is required',
    type: 'value_error',
    input: date,
  })
}

const imageAddress = (addressOf: AddressOf, key: string | null): string | null =>
  key === null ? null : addressOf(key)

export const viewUser = (row: Selectable<Tables['users']>, addressOf: AddressOf): User => ({
  user_id: row.id,
  identity_id: row.identity,
  is_anonymous: row.is_anonymous === 1,
  ...shownContacts(row),
  first_name: row.first_name,
  last_name: row.last_name,
  profile_image_url: imageAddress(addressOf, row.profile_image_key),
  selected_hub_id: row.selected_hub_id,
  default_hub_id: row.default_hub_id,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
})

/** The hub that a user has selected, else the default one. */
export async function currentHub(q: Queries, user: UserRow): Promise<HubSummary | null> {
  const hubId = user.selected_hub_id ?? user.default_hub_id
  if (hubId === null) return null
  const hub = await hubsWithContact(q).where('hubs.id', '=', hubId).executeTakeFirstOrThrow()
  return summarizeHub(hub)
}

/** Sets or clears a user's selected or default hub. Throws `hub_not_found`, `hub_not_accepting_orders` for a retired hub. */
async function chooseHub(
  { db, runtime }: CloudContext,
  userId: number,
  choice: { selected_hub_id: number } | { default_hub_id: number | null },
): Promise<HubChoice> {
  const q = db.kysely
  const [hubId] = Object.values(choice)
  if (hubId !== null && (await requireHub(q, hubId!)).retired_at !== null)
    throw new ApiError('hub_not_accepting_orders', `Hub ${hubId} is retired. Choose another hub.`, {
      reason: 'retired',
    })
  const user = await q
    .updateTable('users')
    .set({ ...choice, updated_at: runtime.clock.now() })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
  return viewChoice(q, user)
}

/** Clears the selection if it is this hub. Throws `hub_not_found`. */
async function unselectHub({ db, runtime }: CloudContext, userId: number, hubId: number): Promise<void> {
  await requireHub(db.kysely, hubId)
  await db.kysely
    .updateTable('users')
    .set({ selected_hub_id: null, updated_at: runtime.clock.now() })
    .where('id', '=', userId)
    .where('selected_hub_id', '=', hubId)
    .execute()
}

const viewChoice = async (q: Queries, user: UserRow): Promise<HubChoice> => ({
  user_id: user.id,
  current_hub: await currentHub(q, user),
  default_hub_id: user.default_hub_id,
})

/** Makes a stored file the user's image and removes the previous one. */
async function setProfileImage(
  { db, runtime }: CloudContext,
  media: Media,
  userId: number,
  file: FormFile,
): Promise<ProfileImage> {
  await db.transact(async (tx) => {
    await lockUser(tx, userId)
    await removeProfileImage(tx, media, userId)
    await media.keep(tx, [file.key])
    await tx.q
      .updateTable('users')
      .set({ profile_image_key: file.key, updated_at: runtime.clock.now() })
      .where('id', '=', userId)
      .execute()
  })
  return { profile_image_url: media.addressOf(file.key), mime_type: file.mime_type, size: file.size }
}

/** Does nothing if there is none. */
function deleteProfileImage({ db, runtime }: CloudContext, media: Media, userId: number): Promise<void> {
  return db.transact(async (tx) => {
    if (await removeProfileImage(tx, media, userId))
      await tx.q
        .updateTable('users')
        .set({ profile_image_key: null, updated_at: runtime.clock.now() })
        .where('id', '=', userId)
        .execute()
  })
}

/**
 * Removes the file after the commit; the caller changes the reference to it. Returns whether there was one.
 */
export async function removeProfileImage(tx: Tx, media: Media, userId: number): Promise<boolean> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('profile_image_key').where('id', '=', userId))
    .executeTakeFirstOrThrow()
  if (user.profile_image_key === null) return false
  await media.remove(tx, user.profile_image_key)
  return true
}
