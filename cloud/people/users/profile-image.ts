import type { ProfileImage } from '../../../protocol/contract/consumer-profile.ts'
import type { FormFile } from '../../../protocol/contract/form.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Tx } from '../../platform/store/database.ts'

type Context = Pick<CloudContext, 'db' | 'runtime'>

/** Makes a stored file the user's image; the one before it goes. */
export async function setProfileImage(
  { db, runtime }: Context,
  media: Media,
  userId: number,
  file: FormFile,
): Promise<ProfileImage> {
  await db.transact(async (tx) => {
    await removeProfileImage(tx, media, userId)
    await media.keep(tx, [file.key])
    await tx.q
      .updateTable('users')
      .set({ profile_image_key: file.key, updated_at: runtime.clock.now() })
      .where('id', '=', userId)
      .execute()
  })
  return { profile_image_url: media.addressOf(file.key), mime_type: file.mime_type, size: file.size }
}

/** Without effect where there is none. */
export function deleteProfileImage({ db, runtime }: Context, media: Media, userId: number): Promise<void> {
  return db.transact(async (tx) => {
    if (await removeProfileImage(tx, media, userId))
      await tx.q
        .updateTable('users')
        .set({ profile_image_key: null, updated_at: runtime.clock.now() })
        .where('id', '=', userId)
        .execute()
  })
}

/** Has the file removed after the commit; the reference to it is the caller's to change. Tells whether there was one. */
export async function removeProfileImage(tx: Tx, media: Media, userId: number): Promise<boolean> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('profile_image_key').where('id', '=', userId))
    .executeTakeFirstOrThrow()
  if (user.profile_image_key === null) return false
  await media.remove(tx, user.profile_image_key)
  return true
}
