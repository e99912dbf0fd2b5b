import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fetchBackup, openTarget } from '../../../../cloud/operations/backup/target.ts'
import { S3_BUCKET, S3_KEY, S3_REGION, startS3Server } from '../../support/s3-server.ts'

const record = {
  version: '2026.5.4+0123456',
  schema_version: '0001-first',
  database: 'sqlite',
  encrypted: false,
  size_bytes: 3,
  sha256: 'ab',
  media: 'included',
} as const
const none = { accessKeyId: undefined, secretAccessKey: undefined }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'larder-target-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

async function bucket(prefix: string): Promise<string> {
  const server = await startS3Server()
  onTestFinished(() => server.close())
  const endpoint = encodeURIComponent(new URL(server.endpoint).origin)
  return `s3://${S3_BUCKET}/${prefix}?endpoint=${endpoint}&region=${S3_REGION}`
}

test.each([
  ['a folder', () => Promise.resolve(join(folder(), 'backups')), none],
  ['a bucket', () => bucket('cloud/daily'), S3_KEY],
])(
  '%s stores backups, lists them newest first, returns and removes them',
  async (_name, place, credentials) => {
    const own = folder()
    const target = openTarget(await place(), credentials)
    expect(await target.list()).toEqual([])
    for (const day of ['01', '02']) {
      writeFileSync(join(own, 'file'), `day ${day}`)
      const created_at = `2026-05-${day}T02:00:00.000Z`
      writeFileSync(join(own, 'record'), JSON.stringify({ created_at, ...record }))
      await target.put(`larder-${day}.tar.gz`, join(own, 'file'))
      await target.put(`larder-${day}.tar.gz.json`, join(own, 'record'))
    }
    const listed = await target.list()
    expect(listed.map(({ name }) => name)).toEqual(['larder-02.tar.gz', 'larder-01.tar.gz'])
    const { path, record: its } = await fetchBackup(listed[1]!.file, credentials, own)
    expect([readFileSync(path, 'utf8'), its?.created_at]).toEqual(['day 01', '2026-05-01T02:00:00.000Z'])
    await target.remove('larder-01.tar.gz')
    expect((await target.list()).map(({ name }) => name)).toEqual(['larder-02.tar.gz'])
    await expect(fetchBackup(listed[1]!.file, credentials, own)).rejects.toThrow('there is no')
  },
)

test('an s3: target without credentials is refused with their names', () => {
  expect(() => openTarget('s3://backups', none)).toThrow('AWS_ACCESS_KEY_ID')
})
