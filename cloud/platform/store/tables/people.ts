import { PushPlatform } from '../../../../protocol/contract/consumer-profile.ts'
import { defineTable, flag, id, instant, int, oneOf, text } from '../table.ts'

/** Customers and their devices. */
export const peopleTables = {
  users: defineTable({
    id,
    /** The identity provider's `sub`; null after the user's deletion. */
    identity: text.unique.nullable,
    is_anonymous: flag,
    /**
     * In lower case. Several users may have the same contact if no token has verified it: naming an address first must
     * not block its owner. A verified contact belongs to one user.
     */
    email: text.nullable,
    email_verified: flag.default(0),
    phone_number: text.nullable,
    phone_verified: flag.default(0),
    first_name: text.nullable,
    last_name: text.nullable,
    /** In the media store. */
    profile_image_key: text.nullable,
    selected_hub_id: int.references('hubs').nullable,
    default_hub_id: int.references('hubs').nullable,
    /** ISO 8601 date. */
    date_of_birth: text.nullable,
    /** BCP 47. */
    locale: text.nullable,
    /** The device that last bootstrapped the user. */
    device_uuid: text.nullable,
    notify_push: flag.default(1),
    notify_email: flag.default(1),
    notify_sms: flag.default(1),
    /** When all personal data was erased. The row stays, because the books refer to it. */
    deleted_at: instant.nullable,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .index('users_by_email', ['email'])
    .index('users_by_phone_number', ['phone_number'])
    .index('users_guests_by_age', ['updated_at'], 'is_anonymous = 1')
    .uniqueIndex('users_by_verified_email', ['email'], 'email_verified = 1')
    .uniqueIndex('users_by_verified_phone_number', ['phone_number'], 'phone_verified = 1'),
  /**
   * Keyed digests that recognise a customer: identities, verified contacts and devices of users. They outlive the
   * account, so that the limits of deals count the person, not the row.
   */
  customer_marks: defineTable({
    mark: text.fixed,
    user_id: int.references('users', { onDelete: 'cascade' }).fixed,
    created_at: instant.fixed,
  })
    .primaryKey('mark', 'user_id')
    .index('customer_marks_by_user', ['user_id']),
  push_configs: defineTable({
    id,
    user_id: int.references('users', { onDelete: 'cascade' }),
    device_id: text.fixed,
    platform: oneOf(PushPlatform.options),
    /** A secret of the device. Sealed, and never shown again. */
    push_token: text,
    /** SHA-256 of platform and token. A device belongs to one user at a time. */
    token_digest: text.unique,
    app_version: text.nullable,
    locale: text.nullable,
    enabled: flag,
    created_at: instant.fixed,
    updated_at: instant,
  }).unique('user_id', 'device_id'),
  /** Invitations of staff that nobody has accepted yet. */
  invitations: defineTable({
    id,
    /** SHA-256 of the secret in the link. */
    digest: text.unique.fixed,
    name: text.fixed,
    email: text.nullable.fixed,
    role: text.fixed,
    /** JSON array of hub ids. */
    hubs: text.fixed,
    created_at: instant.fixed,
    expires_at: instant.fixed,
  }).index('invitations_by_end', ['expires_at']),
  /** Passkeys with which staff sign in (WebAuthn). They end with the last role of their identity. */
  passkeys: defineTable({
    /** The credential's id, base64url. */
    id: text.primaryKey.fixed,
    identity: text.fixed,
    name: text.fixed,
    email: text.nullable.fixed,
    /** COSE key, base64url. */
    public_key: text.fixed,
    /** Signatures that the authenticator has counted; 0 if it does not count. */
    counter: int,
    created_at: instant.fixed,
    /** The person's name for the device. */
    label: text.nullable,
  }).index('passkeys_by_identity', ['identity']),
  /** Challenges of sign-ins that have been answered: none is accepted twice. */
  used_challenges: defineTable({
    /** SHA-256 of the challenge. */
    digest: text.primaryKey.fixed,
    expires_at: instant.fixed,
  }).index('used_challenges_by_end', ['expires_at']),
}
