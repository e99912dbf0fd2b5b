import type { Selectable } from 'kysely'
import type { User } from '../../protocol/contract/consumer-users.ts'
import { timestamp } from '../orders/timestamps.ts'
import type { Tables } from '../store/schema.ts'

export const viewUser = (row: Selectable<Tables['users']>): User => ({
  user_id: row.id,
  identity_id: row.identity,
  is_anonymous: row.is_anonymous === 1,
  email: row.email,
  phone_number: row.phone_number,
  first_name: row.first_name,
  last_name: row.last_name,
  profile_image_url: row.profile_image_url,
  selected_hub_id: row.selected_hub_id,
  default_hub_id: row.default_hub_id,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
})
