import { ApiError } from '../api-error.ts'
import type { Tx } from '../store/database.ts'

/**
 * Throws `user_not_found` if the user was deleted during the request. Without the lock, the request could store data of
 * a deleted user.
 */
export async function lockUser(tx: Tx, userId: number): Promise<void> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('deleted_at').where('id', '=', userId))
    .executeTakeFirst()
  if (!user || user.deleted_at !== null) throw new ApiError('user_not_found')
}
