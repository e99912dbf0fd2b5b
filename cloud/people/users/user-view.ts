import type { Selectable } from 'kysely'
import type { User } from '../../../protocol/contract/consumer-users.ts'
import type { AddressOf } from '../../platform/media/addresses.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { Tables } from '../../platform/store/schema.ts'

export const imageAddress = (addressOf: AddressOf, key: string | null): string | null =>
  key === null ? null : addressOf(key)

export const viewUser = (row: Selectable<Tables['users']>, addressOf: AddressOf): User => ({
  user_id: row.id,
  identity_id: row.identity,
  is_anonymous: row.is_anonymous === 1,
  email: row.email,
  phone_number: row.phone_number,
  first_name: row.first_name,
  last_name: row.last_name,
  profile_image_url: imageAddress(addressOf, row.profile_image_key),
  selected_hub_id: row.selected_hub_id,
  default_hub_id: row.default_hub_id,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
})
