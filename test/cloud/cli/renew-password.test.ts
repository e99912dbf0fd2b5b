import { expect, onTestFinished, test, vi } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const renew = async () =>
  expect(await runCommandLine(hubCommands, runtime, ['renew-password', '1'], environment)).toMatchObject({
    exitCode: 0,
  })

test('renew-password warns if the hub has a valid certificate, which its board uses', async () => {
  const said: string[] = []
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0)
  onTestFinished(() => write.mockRestore())
  const now = runtime.clock.now()
  const certificate = { hub_id: 1, issued_at: now, revoked_at: null }
  await renew()
  expect(said).toEqual([])
  await db.kysely
    .insertInto('hub_certificates')
    .values({ ...certificate, serial: '4a', expires_at: now + 86_400_000 })
    .execute()
  await renew()
  expect(said.join('')).toContain('Hub 1 has a valid certificate')
})
