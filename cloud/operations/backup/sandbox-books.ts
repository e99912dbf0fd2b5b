import { openDatabase, type CloudDatabase, type Tx } from '../../platform/store/database.ts'
import { sandboxTables } from '../../platform/store/tables/processors.ts'

type Table = keyof typeof sandboxTables
const names = Object.keys(sandboxTables) as Table[]
const ROWS_AT_ONCE = 500

/**
 * Reads the sandbox processor's books before a restore. Returns a function that puts them into the restored database. They
 * represent another company: a restore does not undo its payments, as it does not undo those of a real processor.
 */
export async function readSandboxBooks(url: string): Promise<(db: CloudDatabase) => Promise<void>> {
  const db = openDatabase({ url }).for('background')
  try {
    if (await db.isEmpty()) return () => Promise.resolve()
    const books = await Promise.all(names.map((name) => db.kysely.selectFrom(name).selectAll().execute()))
    const work = await db.kysely
      .selectFrom('due_work')
      .selectAll()
      .where('kind', 'like', 'sandbox.%')
      .execute()
    return (restored) =>
      restored.transact(async (tx) => {
        for (const name of names.toReversed()) await tx.q.deleteFrom(name).execute()
        for (const [index, name] of names.entries()) await insert(tx, name, books[index]!)
        await tx.q.deleteFrom('due_work').where('kind', 'like', 'sandbox.%').execute()
        await insert(tx, 'due_work', work)
      })
  } finally {
    await db.close()
  }
}

async function insert(tx: Tx, table: Table | 'due_work', rows: readonly object[]): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE)
    await tx.q
      .insertInto(table)
      .values(rows.slice(first, first + ROWS_AT_ONCE))
      .execute()
}
