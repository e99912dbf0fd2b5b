import type { Queries } from '../../platform/store/database.ts'
import type { UserRow } from './profile.ts'

/** One of the two ways in which a person is reached. An e-mail address is in small letters. */
export type Contact = { phone_number: string } | { email: string }

/** Everybody with a contact, who registered with it before a guest: contacts are not unique. */
export function usersWith(q: Queries, contact: Contact): Promise<UserRow[]> {
  const users = q.selectFrom('users').selectAll().orderBy('is_anonymous').orderBy('id').limit(100)
  return (
    'email' in contact
      ? users.where('email', '=', contact.email)
      : users.where('phone_number', '=', contact.phone_number)
  ).execute()
}
