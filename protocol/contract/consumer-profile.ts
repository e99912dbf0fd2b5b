import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { normalText } from '../model/name-text.ts'
import {
  Id,
  HubId,
  UserId,
  CreatedAt,
  UpdatedAt,
  ImageUrl,
  PhoneNumber,
  Email,
  PersonName,
} from './fields.ts'
import { ShownContacts } from './consumer-users.ts'
import { picture } from './form.ts'
import { HubSummary } from './owner-hubs.ts'
import { defineRoutes } from './route.ts'

/** Notices that a customer wants. This service sends push messages only; it stores the other two for other programs. */
const switchText = {
  push: 'True sends notices of orders to the devices that are registered for push messages.',
  email: 'Stored for other programs: this service mails nothing to customers.',
  sms: 'Stored for other programs: this service sends no text messages.',
} as const

const notices =
  'Notices that the customer wants. `push` is sent to the devices that are registered for push messages. `email` and `sms` are stored only: this service mails nothing to customers, and this service sends no text messages.'

/** Fields that the contract marks with `?` are always present here; null if there is no value. */
export const Profile = z
  .object({
    user_id: UserId,
    first_name: z.string().nullable().describe('First name; null if it is unknown.'),
    last_name: z.string().nullable().describe('Last name; null if it is unknown.'),
    ...ShownContacts,
    date_of_birth: z.iso.date().nullable().describe('Date of birth (`YYYY-MM-DD`); null if it is unknown.'),
    locale: z.string().nullable().describe('Language tag (BCP 47), such as `en-US`; null if it is unknown.'),
    profile_image_url: z
      .string()
      .nullable()
      .describe('Signed address of the profile image, which expires; null if there is none.'),
    notifications: z
      .object({
        push: z.boolean().describe(switchText.push),
        email: z.boolean().describe(switchText.email),
        sms: z.boolean().describe(switchText.sms),
      })
      .describe(notices),
    updated_at: UpdatedAt,
  })
  .meta({ id: 'Profile', description: 'Profile of a customer.' })
export type Profile = z.infer<typeof Profile>

export const ProfileImage = z
  .object({
    profile_image_url: ImageUrl,
    mime_type: z.string().describe('Media type of the image, by its content.'),
    size: z.int().describe('Size in bytes.'),
  })
  .meta({ id: 'ProfileImage', description: 'Profile image of a customer.' })
export type ProfileImage = z.infer<typeof ProfileImage>

/** The hub that the user has selected, else the default hub. */
export const HubChoice = z
  .object({
    user_id: UserId,
    current_hub: HubSummary.nullable().describe(
      'Selected hub, else the default hub; null if there is neither.',
    ),
    default_hub_id: Id.nullable().describe('Number of the default hub; null if there is none.'),
  })
  .meta({ id: 'HubChoice', description: 'Selected and default hub of a customer.' })
export type HubChoice = z.infer<typeof HubChoice>

export const PushPlatform = namedEnum('PushPlatform', 'Platform of the device.', {
  ios: 'iOS.',
  android: 'Android.',
  web: 'a browser.',
})

/** The token is never shown again. */
export const PushConfig = z
  .object({
    id: Id.describe('Number of the registration.'),
    device_id: z.string().describe('Id of the device, as the app chose it.'),
    platform: PushPlatform,
    app_version: z.string().nullable().describe('Version of the app; null if the app did not send it.'),
    locale: z
      .string()
      .nullable()
      .describe('Language tag of the device; null if the app did not send a readable one.'),
    enabled: z.boolean().describe('True if push messages go to the device.'),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  })
  .meta({ id: 'PushConfig', description: 'A device that gets push messages.' })
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
const plainTag = (text: string): string => text.replace(/[_-]*[@.#].*$/s, '').replaceAll(/[_-]+/g, '-')

/** A language tag of BCP 47; `_` is read as `-`. */
export const Locale = normalText(LONGEST_LOCALE, plainTag)
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

const switchFor = (channel: keyof typeof switchText) =>
  z
    .boolean()
    .nullable()
    .optional()
    .describe(`${switchText[channel]} null is true. If it is left out: unchanged.`)

/** A merge patch (RFC 7396): absent fields are unchanged, null clears a field. A cleared switch is on. */
const ProfilePatch = z
  .strictObject({
    first_name: PersonName.nullable()
      .optional()
      .describe('First name. null clears it. If it is left out: unchanged.'),
    last_name: PersonName.nullable()
      .optional()
      .describe('Last name. null clears it. If it is left out: unchanged.'),
    email: Email.nullable()
      .optional()
      .describe('E-mail address. null clears it. If it is left out: unchanged.'),
    phone_number: PhoneNumber.nullable()
      .optional()
      .describe(
        'Phone number in E.164, such as `+15550100000`. null clears it. If it is left out: unchanged.',
      ),
    date_of_birth: z.iso
      .date()
      .nullable()
      .optional()
      .describe(
        'Date of birth (`YYYY-MM-DD`), from 1900 to today. null clears it. If it is left out: unchanged.',
      ),
    locale: Locale.nullable()
      .optional()
      .describe(
        'Language tag (BCP 47), such as `en-US`; `en_US` is accepted. null clears it. If it is left out: unchanged.',
      ),
    notifications: z
      .strictObject({ push: switchFor('push'), email: switchFor('email'), sms: switchFor('sms') })
      .nullable()
      .optional()
      .describe(`${notices} null switches all on. If it is left out: unchanged.`),
  })
  .meta({
    id: 'ProfilePatch',
    description: 'Changes of a profile: absent fields are unchanged, null clears a field.',
  })
export type ProfilePatch = z.infer<typeof ProfilePatch>

const DeviceId = z.string().min(1).max(255)
const patch = {
  body: ProfilePatch,
  response: Profile,
  summary: 'Change the profile: what is absent is kept, null clears',
  description: 'A contact that the token does not verify is kept as one that is not verified.',
  examples: { body: { first_name: 'Ada', date_of_birth: '1990-12-10', notifications: { sms: false } } },
} as const

/** C §4.3: profile, hub and devices of a user. */
export const consumerProfileRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Profile' },
  {
    'consumer.profile.get': {
      at: 'GET /users/user/profile',
      response: Profile,
      summary: 'Read the profile',
      description: 'The profile of the user whose token is sent.',
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
        'The image is png, jpeg, webp or gif by its content and has at most 5 MiB. It replaces the former image.',
    },
    'consumer.profile.delete_image': {
      at: 'DELETE /users/user/profile/image',
      status: 204,
      response: z.undefined(),
      summary: 'Remove the profile image, if there is one',
      description: 'The call succeeds if there is no image.',
    },
    'consumer.profile.select_hub': {
      at: 'POST /users/user/hub/{hub_id}',
      params: z.object({ hub_id: HubId }),
      response: HubChoice,
      errors: ['hub_not_found', 'hub_not_accepting_orders'],
      summary: 'Select a hub',
      description:
        'The selected hub replaces the former selection. `GET /users/user` returns it. A retired hub is refused: 409 `hub_not_accepting_orders`.',
    },
    'consumer.profile.unselect_hub': {
      at: 'DELETE /users/user/hub/{hub_id}',
      params: z.object({ hub_id: HubId }),
      status: 204,
      response: z.undefined(),
      errors: ['hub_not_found'],
      summary: 'Clear the selection of a hub',
      description: 'Another hub that is selected stays selected.',
    },
    'consumer.profile.default_hub': {
      at: 'POST /users/user/default-hub',
      body: z.strictObject({ hub_id: Id.nullable().describe('Number of the default hub; null clears it.') }),
      response: HubChoice,
      errors: ['hub_not_found', 'hub_not_accepting_orders'],
      summary: 'Set the default hub; null clears it',
      description:
        'The default hub counts while no hub is selected. A retired hub is refused: 409 `hub_not_accepting_orders`.',
      examples: { body: { hub_id: 1 } },
    },
    'consumer.profile.register_push': {
      at: 'POST /users/user/push-configs',
      body: z.strictObject({
        device_id: DeviceId.describe(
          'Id of the device, as the app chooses it. The same id replaces the former registration.',
        ),
        push_token: z
          .string()
          .min(1)
          .max(4096)
          .describe('Token of the push service. It is never shown again.'),
        platform: PushPlatform,
        app_version: z
          .string()
          .min(1)
          .max(64)
          .nullish()
          .describe('Version of the app. If it is left out: unknown.'),
        locale: DeviceLocale.nullish().describe(
          'Language tag of the device, such as `en-US` or `en_US`. Any other text is stored as null. If it is left out: null.',
        ),
      }),
      response: PushConfig,
      summary: 'Register a device for push messages',
      description:
        'The same `device_id` replaces the former registration. A push token belongs to one user: it is removed from any other. A user has at most 20 devices: a further one replaces the device that was registered longest ago.',
      examples: { body: { device_id: 'phone-1', push_token: 'c2VjcmV0', platform: 'ios' } },
    },
    'consumer.profile.unregister_push': {
      at: 'DELETE /users/user/push-configs',
      query: z.object({ device_id: DeviceId.describe('Id of the device.') }),
      response: z.object({ deleted: z.boolean().describe('True if the device was registered.') }),
      summary: 'Stop push messages to a device',
      description: 'The call succeeds if the device is not registered.',
    },
  },
)
