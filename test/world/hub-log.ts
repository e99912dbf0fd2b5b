import { gzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import type { CloudContext } from '../../cloud/platform/context.ts'

/** Stands in for the due work that fetches the log of a hub: answers each request. `after` runs while a call waits. */
export function answerLogs(
  { db }: Pick<CloudContext, 'db'>,
  records: readonly object[],
  after: () => void = () => {},
): void {
  const content = gzipSync(records.map((record) => JSON.stringify(record)).join('\n')).toString('base64')
  const answer = { state: 'done', content, cursor: 'run.1' } as const
  const timer = setInterval(() => {
    void db.kysely
      .updateTable('diagnoses')
      .set(answer)
      .executeTakeFirst()
      .then(
        ({ numUpdatedRows }) => numUpdatedRows > 0n && after(),
        // The test has ended, and its database with it.
        () => {},
      )
  }, 20)
  onTestFinished(() => clearInterval(timer))
}
