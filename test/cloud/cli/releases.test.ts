import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { releaseCommands } from '../../../cloud/cli/releases.ts'
import { makeKeys } from '../../../cloud/operations/releases/metadata.ts'
import { readMetadata } from '../../../cloud/operations/releases/releases.ts'
import { changeRollout, startRollout } from '../../../cloud/operations/releases/rollouts.ts'
import { addTestRelease, processor, tarballOf } from '../../support/release.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { onEachDatabase } from '../../world/database.ts'
import { testMedia } from '../support/media.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const runtime = virtualRuntime()

const releases = (...args: string[]) => runCommandLine(releaseCommands, runtime, args, environment)
const keys = join(folder, 'keys')
const V1 = '2026.3.1+0a1b2c3'
const V2 = '2026.4.1+1b2c3d4'

test('an operator creates keys once, and adds and lists signed releases with an audit record', async () => {
  expect(await releases('keygen', '--to', keys)).toMatchObject({ exitCode: 0 })
  expect(await releases('keygen', '--to', keys)).toMatchObject({ exitCode: 1 })
  expect(await releases('list')).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  const added = await releases('add', tarballOf(V1), '--keys', keys)
  expect(added).toMatchObject({ exitCode: 0 })
  const first = JSON.parse(added.stdout) as Record<string, unknown>
  expect(first).toMatchObject({ version: V1, processor, file: `larder-hub_${V1}_${processor}.tar.gz` })
  expect(first['sha256']).toMatch(/^[0-9a-f]{64}$/)
  expect(await releases('add', tarballOf(V2), '--keys', keys)).toMatchObject({ exitCode: 0 })
  const listed = JSON.parse((await releases('list')).stdout) as { version: string }[]
  expect(listed.map(({ version }) => version).toSorted()).toEqual([V1, V2])
  const acts = await db.kysely.selectFrom('audit_log').select('action').orderBy('id').execute()
  expect(acts.map(({ action }) => action)).toEqual(['releases.add', 'releases.add'])
  const kept = await db.kysely.selectFrom('media').select(['state', 'mime_type']).execute()
  const stored = { state: 'kept', mime_type: 'application/gzip' }
  expect(kept).toEqual([stored, stored])
})

test('a second release with the same version, foreign keys, and a file that is not a package are refused with status 1', async () => {
  expect(await releases('add', tarballOf(V1), '--keys', keys)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('the version exists') as string,
  })
  const foreign = join(folder, 'foreign')
  await releases('keygen', '--to', foreign)
  const refused = { exitCode: 1, stderr: expect.stringContaining('bad signature') as string }
  expect(await releases('add', tarballOf('2026.5.1+1'), '--keys', foreign)).toMatchObject(refused)
  writeFileSync(join(foreign, 'root.json'), readFileSync(join(keys, 'root.json')))
  expect(await releases('add', tarballOf('2026.5.1+1'), '--keys', foreign)).toMatchObject(refused)
  const other = join(folder, 'other.tar.gz')
  writeFileSync(other, 'no tarball')
  expect(await releases('add', other, '--keys', keys)).toMatchObject({ exitCode: 1 })
  expect(await db.kysely.selectFrom('media').select('key').execute()).toHaveLength(2)
})

test('an operator removes a release, renews the signature, and replaces the keys, each with an audit record', async () => {
  const start = () =>
    db.transact((tx) => startRollout(tx, { runtime }, { version: V2, waves: ['100%'], failures: '10%' }))
  const rollout = await start()
  const refused = await releases('remove', V2, '--keys', keys)
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('abort it first') as string })
  await db.transact((tx) => changeRollout(tx, { runtime }, rollout, 'abort'))
  const removed = await releases('remove', V2, '--keys', keys)
  expect(removed).toMatchObject({ exitCode: 0 })
  expect(JSON.parse(removed.stdout)).toEqual({
    version: V2,
    removed: [`larder-hub_${V2}_${processor}.tar.gz`],
  })
  expect(await releases('remove', V2, '--keys', keys)).toMatchObject({ exitCode: 1 })
  await expect(start()).rejects.toThrow('no release has the version')
  const listed = async () => JSON.parse((await releases('list')).stdout) as { version: string }[]
  expect((await listed()).map(({ version }) => version)).toEqual([V1])
  const next = join(folder, 'next')
  expect(await releases('rotate', '--keys', keys, '--to', next)).toMatchObject({ exitCode: 0 })
  const signed = await releases('sign', '--keys', next)
  expect(JSON.parse(signed.stdout)).toMatchObject({ root: '2.root.json' })
  // The former keys sign nothing any more.
  expect(await releases('sign', '--keys', keys)).toMatchObject({ exitCode: 1 })
  expect(await releases('add', tarballOf(V2), '--keys', next)).toMatchObject({ exitCode: 0 })
  expect((await listed()).map(({ version }) => version).toSorted()).toEqual([V1, V2])
  const acts = await db.kysely.selectFrom('audit_log').select('action').orderBy('id').execute()
  const later = ['releases.remove', 'releases.sign', 'releases.add']
  expect(acts.slice(2).map(({ action }) => action)).toEqual(later)
})

test('a missing option is wrong usage', async () => {
  expect(await releases('keygen')).toMatchObject({ exitCode: 2 })
  expect(await releases('add', 'x.tar.gz')).toMatchObject({ exitCode: 2 })
})

onEachDatabase('releases that are added at the same time', (open) => {
  test('the signed list contains every release, also if none was added before', async () => {
    const context = testContext(await open(), runtime)
    const signing = makeKeys(runtime.clock.now())
    const media = testMedia(context)
    const versions = ['2026.6.1+1', '2026.6.2+2', '2026.6.3+3', '2026.6.4+4']
    await Promise.all(versions.map((version) => addTestRelease(context, media, version, signing)))
    const list = JSON.parse((await readMetadata(context.db.kysely, 'targets.json'))!) as {
      signed: { version: number; targets: object }
    }
    const files = versions.map((version) => `larder-hub_${version}_${processor}.tar.gz`)
    expect(Object.keys(list.signed.targets).toSorted()).toEqual(files)
    // The first list has the time as its number, each later one the next number.
    expect(list.signed.version).toBe(Math.floor(runtime.clock.now() / 1000) + 3)
  })
})
