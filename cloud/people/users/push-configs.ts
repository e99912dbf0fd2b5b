import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { PushConfig } from '../../../protocol/contract/consumer-profile.ts'
import type { CloudContext } from '../../platform/context.ts'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import { isUniqueViolation, type Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

export interface PushRegistration {
  device_id: string
  push_token: string
  platform: PushConfig['platform']
  app_version?: string | null | undefined
  locale?: string | null | undefined
}

/**
 * Registers a device, also repeatedly. The holder of a device's token has the device: from now on it is
 * notified only of this user's orders.
 */
export async function registerPush(
  context: CloudContext,
  userId: number,
  registration: PushRegistration,
): Promise<PushConfig> {
  const attempt = () => context.db.transact((tx) => register(tx, context, userId, registration))
  try {
    return viewPushConfig(await attempt())
  } catch (error) {
    // The same device was registered for another user at this moment; a second attempt takes it over.
    if (!isUniqueViolation(error)) throw error
    return viewPushConfig(await attempt())
  }
}

async function register(
  tx: Tx,
  { runtime, settings, sealer }: CloudContext,
  userId: number,
  registration: PushRegistration,
) {
  const now = runtime.clock.now()
  const { device_id, push_token, platform, app_version = null, locale } = registration
  // Registrations of one user are serialised.
  await lockUser(tx, userId)
  const token_digest = createHash('sha256').update(`${platform} ${push_token}`).digest('hex')
  await tx.q
    .deleteFrom('push_configs')
    .where('token_digest', '=', token_digest)
    .where((eb) => eb.or([eb('user_id', '<>', userId), eb('device_id', '<>', device_id)]))
    .execute()
  const values = {
    platform,
    push_token: sealer.seal('push token', push_token),
    token_digest,
    app_version,
    locale: locale || null,
    enabled: 1,
    updated_at: now,
  } as const
  const row = await tx.q
    .insertInto('push_configs')
    .values({ ...values, user_id: userId, device_id, created_at: now })
    .onConflict((conflict) => conflict.columns(['user_id', 'device_id']).doUpdateSet(values))
    .returningAll()
    .executeTakeFirstOrThrow()
  const surplus = tx.q
    .selectFrom('push_configs')
    .select('id')
    .where('user_id', '=', userId)
    .orderBy('updated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1000)
    .offset(settings.pushDevices)
  await tx.q.deleteFrom('push_configs').where('id', 'in', surplus).execute()
  return row
}

/** Returns true if there was such a device. */
export async function unregisterPush(
  { db }: CloudContext,
  userId: number,
  deviceId: string,
): Promise<boolean> {
  const { numDeletedRows } = await db.kysely
    .deleteFrom('push_configs')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

const viewPushConfig = (row: Selectable<Tables['push_configs']>): PushConfig => ({
  id: row.id,
  device_id: row.device_id,
  platform: row.platform,
  app_version: row.app_version,
  locale: row.locale,
  enabled: row.enabled === 1,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
})
