import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Customers and their devices. */
export interface PeopleTables {
  users: {
    id: Generated<number>
    /** The identity provider's `sub`; null of a user that was deleted. */
    identity: string | null
    is_anonymous: Flag
    /** In small letters. Neither contact is unique: nobody can keep another one from using an address by naming it first. */
    email: string | null
    phone_number: string | null
    first_name: string | null
    last_name: string | null
    /** In the media store. */
    profile_image_key: string | null
    selected_hub_id: number | null
    default_hub_id: number | null
    /** ISO 8601 date. */
    date_of_birth: string | null
    /** BCP 47. */
    locale: string | null
    /** The device that the user was last bootstrapped from. */
    device_uuid: string | null
    notify_push: Generated<Flag>
    notify_email: Generated<Flag>
    notify_sms: Generated<Flag>
    /** When everything personal was erased. The row stays: the books refer to it. */
    deleted_at: Instant | null
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  push_configs: {
    id: Generated<number>
    user_id: Fixed<number>
    device_id: Fixed<string>
    /** ios | android | web */
    platform: string
    /** A secret of the device's: never shown again. */
    push_token: string
    /** SHA-256 of platform and token: one device is one user's at a time. */
    token_digest: string
    app_version: string | null
    locale: string | null
    enabled: Flag
    created_at: Fixed<Instant>
    updated_at: Instant
  }
}
