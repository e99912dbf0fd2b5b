import type { CloudDatabase, Tx } from '../../cloud/platform/store/database.ts'

/**
 * Runs transactions on PostgreSQL of which none commits before all have made their changes. SQLite executes one
 * transaction at a time.
 */
export async function simultaneously(
  db: CloudDatabase,
  ...changes: readonly ((tx: Tx) => Promise<unknown>)[]
): Promise<void> {
  let arrive = (): void => {}
  const allChanged = new Promise<void>((resolve) => (arrive = resolve))
  let left = changes.length
  await Promise.all(
    changes.map((change) =>
      db.transact(async (tx) => {
        await change(tx)
        left -= 1
        if (left === 0) arrive()
        if (db.kind === 'postgres') await allChanged
      }),
    ),
  )
}
