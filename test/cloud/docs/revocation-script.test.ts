import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { openAuthorities } from '../../../cloud/enrolment/authority.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { revocationScript } from '../../support/mosquitto-spec.ts'
import { service } from '../../support/services.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'

const runtime = systemRuntime()
const now = runtime.clock.now()
const DAY_MS = 86_400_000

/** The state of the unit `mosquitto`. */
type Unit = 'active' | 'inactive' | 'failed'

/** The script of the page “Message brokers” on a machine of its own: it calls stand-ins for `systemctl`, `mv` and `sleep`. */
async function broker(unit: Unit) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-revocations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const at = (name: string): string => join(folder, name)
  const read = (name: string): string | undefined =>
    existsSync(at(name)) ? readFileSync(at(name), 'utf8') : undefined
  mkdirSync(at('bin'))
  const stand = (name: string, text: string): void =>
    writeFileSync(at(`bin/${name}`), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  stand('sleep', 'exec /bin/sleep 0.05')
  stand('mv', `/bin/mv "$@"; [ ! -e ${at('kills')} ] || kill -KILL $PPID`)
  stand(
    'systemctl',
    `unit=$(cat ${at('unit')})
reload() { [ ! -e ${at('refuses')} ] && echo reloads >> ${at('calls')}; }
start() { echo active > ${at('unit')}; echo starts >> ${at('calls')}; }
case "$*" in
"is-failed --quiet mosquitto") [ $unit = failed ] ;;
"start mosquitto") start ;;
"reload-or-restart mosquitto") if [ $unit = active ]; then reload; else start; fi ;;
"try-reload-or-restart mosquitto") [ $unit != active ] || reload ;;
*) exit 1 ;;
esac`,
  )
  writeFileSync(at('unit'), unit)
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const [authority] = await openAuthorities(testContext(db, runtime))
  const listOf = (...serials: string[]): Promise<string> =>
    authority.listRevoked(
      serials.map((serial) => ({ serial, revokedAt: now })),
      { from: now, until: now + DAY_MS },
    )
  const script = revocationScript({ folder, url: pathToFileURL(at('served.pem')).href })
  return {
    at,
    read,
    listOf,
    /** Answers of the cloud from now on. */
    serve: (list: string): void => {
      writeFileSync(at('draft'), list)
      renameSync(at('draft'), at('served.pem'))
    },
    calls: (): string[] => read('calls')?.trim().split('\n') ?? [],
    /** Starts the script. `ended` resolves when it ends. */
    run: () => {
      const PATH = `${at('bin')}:${process.env['PATH']}`
      const child = spawn('/bin/sh', ['-c', script], { env: { ...process.env, PATH }, stdio: 'ignore' })
      const ended = new Promise((resolve) => child.once('exit', resolve))
      const end = () => (child.kill('SIGKILL'), ended)
      onTestFinished(async () => void (await end()))
      return { ended, end }
    },
  }
}

const until = (check: () => unknown) => expect.poll(check, { timeout: 30_000, interval: 20 })

service('mosquittoCertificates')(
  "Mosquitto reads a list of revoked certificates also if the script was killed before Mosquitto's reload",
  async () => {
    const { at, calls, listOf, read, run, serve } = await broker('active')
    serve(await listOf())
    const first = run()
    await until(calls).toEqual(['reloads'])
    writeFileSync(at('kills'), '')
    const second = await listOf('4a')
    serve(second)
    await first.ended
    expect([read('crl.pem'), calls()]).toEqual([second, ['reloads']])
    rmSync(at('kills'))
    run()
    await until(calls).toEqual(['reloads', 'reloads'])
  },
)

service('mosquittoCertificates')(
  'a Mosquitto that was stopped on purpose stays stopped when the list of revoked certificates changes',
  async () => {
    const { calls, listOf, read, run, serve, at } = await broker('inactive')
    run()
    for (const serials of [[], ['4a'], ['4a', '4b']]) {
      const list = await listOf(...serials)
      serve(list)
      await until(() => read('crl.pem')).toBe(list)
    }
    expect(calls()).toEqual([])
    // The script has called `systemctl` for the last list when it replaces an old one.
    const day = new Date(now - 2 * DAY_MS)
    utimesSync(at('crl.pem'), day, day)
    await until(() => statSync(at('crl.pem')).mtimeMs > now - DAY_MS).toBe(true)
    expect([calls(), read('unit')]).toEqual([[], 'inactive'])
  },
)

service('mosquittoCertificates')(
  'a Mosquitto that failed starts with the first list of revoked certificates; a damaged list changes nothing, and a failed reload is repeated',
  async () => {
    const { at, calls, listOf, read, run, serve } = await broker('failed')
    serve('not a list')
    run()
    await until(() => read('crl.pem.new')).toBe('not a list')
    expect([read('crl.pem'), calls()]).toEqual([undefined, []])
    const first = await listOf()
    serve(first)
    await until(calls).toEqual(['starts'])
    writeFileSync(at('refuses'), '')
    const second = await listOf('4a')
    serve(second)
    await until(() => read('crl.pem')).toBe(second)
    serve('not a list')
    await until(() => read('crl.pem.new')).toBe('not a list')
    expect(calls()).toEqual(['starts'])
    rmSync(at('refuses'))
    await until(calls).toEqual(['starts', 'reloads'])
    expect(read('crl.pem')).toBe(second)
  },
)
