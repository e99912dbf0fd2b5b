import type { ProfilePatch } from '../../../protocol/contract/consumer-profile.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import { chooseHub, unselectHub } from './hub-choice.ts'
import { deleteProfileImage, setProfileImage } from './profile-image.ts'
import { patchProfile, readUser, viewProfile } from './profile.ts'
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

/** C §4.3: what a user says of itself, where it shops, and its devices. */
export function profileHandlers(context: CloudContext, media: Media): Handlers<ProfileRoutes> {
  const addressOf = (key: string): string => media.addressOf(key)
  const patch = async (userId: number, body: ProfilePatch) =>
    viewProfile(await patchProfile(context, userId, body), addressOf)
  return {
    async 'consumer.profile.get'({ credential }) {
      return viewProfile(await readUser(context.db.kysely, credential.userId), addressOf)
    },
    'consumer.profile.update': ({ credential, body }) => patch(credential.userId, body),
    'consumer.profile.patch': ({ credential, body }) => patch(credential.userId, body),
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
