import { z } from 'zod'
import { randomHex } from '../../../protocol/model/ids.ts'
import { nameText } from '../../../protocol/model/name-text.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { isZone } from '../../platform/calendar/zone.ts'
import { formerPasswords } from '../../platform/credentials/former-passwords.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import type { Tx } from '../../platform/store/database.ts'
import { TaxPercent, toMillipercent } from '../../commerce/catalogue/pricing.ts'

const text = nameText(200)

/** An angle in degrees, as people write it: `-89.65`. */
const degrees = (max: number) =>
  z
    .string()
    .regex(/^-?(\d+(\.\d+)?|\.\d+)$/, 'must be a decimal number such as -89.65')
    .transform(Number)
    .pipe(z.number().min(-max).max(max))

/** A new hub is open, with every bin and fridge in use. */
export const openHub = {
  hub_status: 'active',
  accepting_orders: 1,
  disabled_bins: '[]',
  disabled_fridges: '[]',
  external_payments: 'off',
} as const

/** An operator's input for a new hub. */
export const NewHub = z.strictObject({
  name: text,
  street: text,
  street2: text.nullable().default(null),
  city: text,
  state: text,
  postalCode: text,
  longitude: degrees(180),
  latitude: degrees(90),
  timezone: z.string().refine(isZone, 'is no time zone (IANA) that this machine knows'),
  /** Sales tax in percent with at most three decimals: `8.875`. */
  tax: TaxPercent.default('0'),
})
export type NewHub = z.infer<typeof NewHub>

/** Registers a hub. Its MQTT password is shown here and nowhere else. */
export async function createHub(
  tx: Tx,
  { clock, random }: Runtime,
  ownerId: number,
  hub: NewHub,
): Promise<{ hubId: number; mqttPassword: string }> {
  const mqttPassword = randomHex(random, 16)
  const { id } = await tx.q
    .insertInto('hubs')
    .values({
      owner_id: ownerId,
      name: hub.name,
      street_address_1: hub.street,
      street_address_2: hub.street2,
      city: hub.city,
      state: hub.state,
      postal_code: hub.postalCode,
      longitude: hub.longitude,
      latitude: hub.latitude,
      timezone: hub.timezone,
      ...openHub,
      mqtt_password_digest: digestOf(mqttPassword),
      tax_millipercent: toMillipercent(hub.tax),
      created_at: clock.now(),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return { hubId: id, mqttPassword }
}

/**
 * Gives a hub a new MQTT password. With an overlap the present one stays valid for that time, and earlier
 * ones until their own times. Without an overlap (0) all of them end at once.
 */
export async function renewPassword(
  tx: Tx,
  { clock, random }: Runtime,
  hubId: number,
  overlapMs: number,
): Promise<{ password: string; previousUntil: number | null }> {
  const password = randomHex(random, 16)
  const now = clock.now()
  const hub = await tx
    .forUpdate(
      tx.q.selectFrom('hubs').select(['mqtt_password_digest', 'former_passwords']).where('id', '=', hubId),
    )
    .executeTakeFirstOrThrow()
  const former =
    overlapMs > 0
      ? [
          ...formerPasswords(hub.former_passwords, now),
          { digest: hub.mqtt_password_digest, until: now + overlapMs },
        ]
      : []
  await tx.q
    .updateTable('hubs')
    .set({
      mqtt_password_digest: digestOf(password),
      revoked_at: null,
      secrets_erased_at: null,
      former_passwords: former.length > 0 ? JSON.stringify(former) : null,
    })
    .where('id', '=', hubId)
    .execute()
  return { password, previousUntil: former.at(-1)?.until ?? null }
}
