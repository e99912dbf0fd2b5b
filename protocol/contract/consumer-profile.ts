import { z } from 'zod'
import { Email, Id, PersonName, PhoneNumber, Timestamp } from './fields.ts'
import { ShownContacts } from './consumer-users.ts'
import { picture } from './form.ts'
import { HubSummary } from './owner-hubs.ts'
import { defineRoutes } from './route.ts'

/** Which notices a customer wants. Customers are told by push alone: of the other two the user's word is kept for callers that send. */
const switchWords = {
  push: 'Whether notices of orders go to the devices that are registered for push messages.',
  email:
    'Kept and answered, and without effect here: this service mails nothing to customers. For those who do.',
  sms: 'Kept and answered, and without effect here: this service sends no text messages. For those who do.',
} as const

/** What the contract marks with `?` is always present here, and null where there is nothing to say. */
export const Profile = z
  .object({
    user_id: Id,
    first_name: z.string().nullable(),
    last_name: z.string().nullable(),
    ...ShownContacts,
    date_of_birth: z.iso.date().nullable(),
    locale: z.string().nullable(),
    profile_image_url: z.string().nullable(),
    notifications: z.object({
      push: z.boolean().describe(switchWords.push),
      email: z.boolean().describe(switchWords.email),
      sms: z.boolean().describe(switchWords.sms),
    }),
    updated_at: Timestamp,
  })
  .meta({ id: 'Profile' })
export type Profile = z.infer<typeof Profile>

export const ProfileImage = z
  .object({
    /** Can be fetched for a while. */
    profile_image_url: z.string(),
    mime_type: z.string(),
    /** Bytes. */
    size: z.int(),
  })
  .meta({ id: 'ProfileImage' })
export type ProfileImage = z.infer<typeof ProfileImage>

/** The hub that the user has selected, else the default hub. */
export const HubChoice = z
  .object({ user_id: Id, current_hub: HubSummary.nullable(), default_hub_id: Id.nullable() })
  .meta({ id: 'HubChoice' })
export type HubChoice = z.infer<typeof HubChoice>

export const PushPlatform = z.enum(['ios', 'android', 'web']).meta({ id: 'PushPlatform' })

/** The token is never shown again. */
export const PushConfig = z
  .object({
    id: Id,
    device_id: z.string(),
    platform: PushPlatform,
    app_version: z.string().nullable(),
    locale: z.string().nullable(),
    enabled: z.boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'PushConfig' })
export type PushConfig = z.infer<typeof PushConfig>

/** Language, script, region, a variant, and settings of Unicode (`-u-…`): each of them `Intl` can read. */
const LANGUAGE_TAG =
  /^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|\d{3}))?(-([A-Za-z\d]{5,8}|\d[A-Za-z\d]{3}))?(-u(-[A-Za-z\d][A-Za-z](-[A-Za-z\d]{3,8})*)+)?$/

/** The longest tag that is stored. */
const LONGEST_TAG = 35
/** A longer text is no locale of a telephone. */
const LONGEST_LOCALE = 200

/**
 * Reads a locale as telephones write it: `en_US`, `sr_Latn_RS`, `en_US@calendar=gregorian`, `zh_TW_#Hant`. Returns the text of a
 * language tag of BCP 47; whether it is one, the schema checks.
 */
const plainTag = (text: string): string =>
  text.length > LONGEST_LOCALE ? text : text.replace(/[_-]*[@.#].*$/s, '').replaceAll(/[_-]+/g, '-')

/** A language tag of BCP 47; `_` is read as `-`. */
export const Locale = z
  .string()
  .overwrite(plainTag)
  .max(LONGEST_TAG)
  .refine((tag) => LANGUAGE_TAG.test(tag), {
    message: 'must be a language tag, such as en-US',
    abort: true,
  })
  .overwrite((tag) => Intl.getCanonicalLocales(tag)[0]!)
  .meta({ pattern: LANGUAGE_TAG.source.replaceAll('(-', '([-_]') })

/** A device's locale. Text that is no language tag is read as none: it must not cost the device its registration. */
const DeviceLocale = z
  .string()
  .overwrite((text) => Locale.safeParse(text).data ?? '')
  .describe('The language of the device, such as en-US or en_US. Any other text is stored as null.')

const switchFor = (channel: keyof typeof switchWords) =>
  z.boolean().nullable().optional().describe(switchWords[channel])

/** A merge patch (RFC 7396): what is absent is kept, null clears; a switch that is cleared is on. */
const ProfilePatch = z
  .strictObject({
    first_name: PersonName.nullable().optional(),
    last_name: PersonName.nullable().optional(),
    email: Email.nullable().optional(),
    phone_number: PhoneNumber.nullable().optional(),
    /** From 1900 on, and in the past. */
    date_of_birth: z.iso.date().nullable().optional(),
    locale: Locale.nullable().optional(),
    notifications: z
      .strictObject({ push: switchFor('push'), email: switchFor('email'), sms: switchFor('sms') })
      .nullable()
      .optional(),
  })
  .meta({ id: 'ProfilePatch' })
export type ProfilePatch = z.infer<typeof ProfilePatch>

const DeviceId = z.string().min(1).max(255)
const patch = {
  body: ProfilePatch,
  response: Profile,
  summary: 'Change the profile: what is absent is kept, null clears',
  description: 'A contact that the token does not verify is kept as one that is not verified.',
  examples: { body: { first_name: 'Ada', date_of_birth: '1990-12-10', notifications: { sms: false } } },
} as const

/** C §4.3: what a user says of itself, where it shops, and the devices that it is told on. */
export const consumerProfileRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Profile' },
  {
    'consumer.profile.get': {
      at: 'GET /users/user/profile',
      response: Profile,
      summary: 'Read the profile',
    },
    'consumer.profile.update': { ...patch, at: 'PATCH /users/user/profile' },
    'consumer.profile.patch': { ...patch, at: 'PATCH /users/user/me/profile' },
    'consumer.profile.set_image': {
      at: 'PATCH /users/user/profile/image',
      rate: 'picture',
      form: { fields: z.object({}), files: { file: picture }, folder: 'profiles' },
      response: ProfileImage,
      summary: 'Set the profile image',
      description:
        'It is png, jpeg, webp or gif by its content, has at most 5 MiB, and takes the place of the one before.',
    },
    'consumer.profile.delete_image': {
      at: 'DELETE /users/user/profile/image',
      status: 204,
      response: z.undefined(),
      summary: 'Remove the profile image, if there is one',
    },
    'consumer.profile.select_hub': {
      at: 'POST /users/user/hub/{hub_id}',
      params: z.object({ hub_id: Id }),
      response: HubChoice,
      errors: ['hub_not_found'],
      summary: 'Select a hub',
    },
    'consumer.profile.unselect_hub': {
      at: 'DELETE /users/user/hub/{hub_id}',
      params: z.object({ hub_id: Id }),
      status: 204,
      response: z.undefined(),
      errors: ['hub_not_found'],
      summary: 'Select the hub no more; without effect on another selection',
    },
    'consumer.profile.default_hub': {
      at: 'POST /users/user/default-hub',
      body: z.strictObject({ hub_id: Id.nullable() }),
      response: HubChoice,
      errors: ['hub_not_found'],
      summary: 'Set the default hub; null clears it',
      examples: { body: { hub_id: 1 } },
    },
    'consumer.profile.register_push': {
      at: 'POST /users/user/push-configs',
      body: z.strictObject({
        device_id: DeviceId,
        push_token: z.string().min(1).max(4096),
        platform: PushPlatform,
        app_version: z.string().min(1).max(64).nullish(),
        locale: DeviceLocale.nullish(),
      }),
      response: PushConfig,
      summary: 'Register a device for push messages, or register it anew',
      description:
        'A device is told of one user at a time: its token is taken from any other. Of more than 20 devices the one longest unheard goes.',
      examples: { body: { device_id: 'phone-1', push_token: 'c2VjcmV0', platform: 'ios' } },
    },
    'consumer.profile.unregister_push': {
      at: 'DELETE /users/user/push-configs',
      query: z.object({ device_id: DeviceId }),
      response: z.object({ deleted: z.boolean() }),
      summary: 'Send no more push messages to a device',
    },
  },
)
