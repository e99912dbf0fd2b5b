import { connect, createServer, type AddressInfo } from 'node:net'
import { Transform } from 'node:stream'
import { expect, onTestFinished } from 'vitest'
import { openDatabase, type CloudDatabase, type Queries } from '../../../../cloud/platform/store/database.ts'
import { statement } from '../../../../cloud/platform/store/statement.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../../process/chaos/postgres.ts'
import { service } from '../../../support/services.ts'

interface Line {
  db: CloudDatabase
  /** Sent statements, one text per packet. */
  sent: string[]
  /** Replaces a statement by an invalid one from now on, so that it fails as if cancelled. */
  garble: (statement: 'begin' | 'rollback') => void
}

const nameOf = statement((q, { id }: { id: number }) =>
  q.selectFrom('owners').select('name').where('id', '=', id),
)
const namesAbove = statement((q, { id }: { id: number }) =>
  q.selectFrom('owners').select('name').where('id', '>', id),
)
const rename = statement((q, { name }: { name: string }) => q.updateTable('owners').set({ name }))
const readWriteRead = (q: Queries) => [
  nameOf(q, { id: 1 }),
  rename(q, { name: 'Two' }),
  namesAbove(q, { id: 1 }),
]

/** A database behind a recorded connection. */
async function open(): Promise<Line> {
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, systemRuntime())
  const url = new URL(database.url)
  const target = { port: Number(url.port || 5432), host: url.hostname }
  const sent: string[] = []
  let garbled: string | undefined
  const server = createServer((client) => {
    const peer = connect(target)
    const tap = new Transform({
      transform(chunk: Buffer, _, done) {
        const text = chunk.toString('latin1')
        sent.push(text)
        done(
          null,
          Buffer.from(
            garbled ? text.replace(`${garbled}\0`, '?'.repeat(garbled.length) + '\0') : text,
            'latin1',
          ),
        )
      },
    })
    client.pipe(tap).pipe(peer).pipe(client)
    for (const end of [client, peer]) end.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.hostname = '127.0.0.1'
  url.port = `${(server.address() as AddressInfo).port}`
  const db = openDatabase({ url: url.href })
  onTestFinished(async () => {
    await db.close()
    server.close()
    await database.remove()
  })
  await db.migrate()
  await db.kysely.insertInto('owners').values({ id: 1, name: 'One' }).execute()
  await db.transact(({ q }) => q.selectFrom('owners').select('name').execute())
  sent.length = 0
  return { db, sent, garble: (statement) => (garbled = statement) }
}

const postgres = service('postgres')

postgres('PostgreSQL: the first read of a transaction is sent together with its begin', async () => {
  const { db, sent } = await open()
  const read = await db.transact(({ q }) => q.selectFrom('owners').select('name').execute())
  expect(read).toEqual([{ name: 'One' }])
  expect(sent).toHaveLength(2)
  expect(sent[0]).toMatch(/begin\0.*select "name"/s)
  expect(sent[1]).toContain('commit')
})

postgres(
  'PostgreSQL: the first write and all later statements are sent after the transaction has begun',
  async () => {
    const { db, sent } = await open()
    await db.transact(({ q }) => Promise.all(readWriteRead(q)))
    expect(sent.map((text) => text.match(/begin|select|update|commit/g))).toEqual([
      ['begin', 'select'],
      ['update', 'select'],
      ['commit'],
    ])
  },
)

postgres('PostgreSQL: a transaction that failed to begin reads and writes nothing', async () => {
  const { db, sent, garble } = await open()
  garble('begin')
  const told: string[] = []
  const failed = db.transact(async ({ q }) => {
    for (const { status } of await Promise.allSettled(readWriteRead(q))) told.push(status)
    return rename(q, { name: 'Three' })
  })
  await expect(failed).rejects.toThrow('syntax error')
  expect(told).toEqual(['rejected', 'rejected', 'rejected'])
  const writing = db.transact(({ q }) => rename(q, { name: 'Two' }))
  await expect(writing).rejects.toThrow('syntax error')
  const leaving = db.transact(() => Promise.reject(new Error('left')))
  await expect(leaving).rejects.toThrow('left')
  expect(sent.join('')).not.toContain('update')
  expect(await nameOf(db.kysely, { id: 1 })).toEqual([{ name: 'One' }])
})

postgres('PostgreSQL: a connection with a failed rollback is not used again', async () => {
  const { db, garble } = await open()
  // Single statements and transactions of this database share connections.
  const background = db.for('background')
  garble('rollback')
  const leaving = background.transact(async ({ q }) => {
    await rename(q, { name: 'Two' })
    throw new Error('left')
  })
  await expect(leaving).rejects.toThrow('left')
  expect(await nameOf(background.kysely, { id: 1 })).toEqual([{ name: 'One' }])
})
