import { ApiError } from '../api-error.ts'
import type { Tx } from '../store/database.ts'

/** A request may come to its work after its user was deleted: whatever it stores would stay there. Throws `user_not_found`. */
export async function lockUser(tx: Tx, userId: number): Promise<void> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('deleted_at').where('id', '=', userId))
    .executeTakeFirst()
  if (!user || user.deleted_at !== null) throw new ApiError('user_not_found')
}
