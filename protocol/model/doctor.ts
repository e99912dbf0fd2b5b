import { counted } from './counted.ts'
import type { NetworkAddress } from './address.ts'
import { DAY_MS } from './times.ts'
import { sleep, type Clock } from './runtime.ts'

/**
 * The checks of `larder doctor`. Each program has a table of checks by name. A check returns what it found, and advice if an
 * operator must act.
 */
export type CheckResult = 'OK' | 'WARN' | 'FAIL'

export interface Finding {
  result: CheckResult
  /** The state, in one sentence. */
  message: string
  /** What to do, in one sentence. */
  advice?: string
}

/** A check returns undefined if it does not apply to the configuration. An error that it throws is a FAIL. */
export type Check = () => Finding | undefined | Promise<Finding | undefined>
export type Checks = Readonly<Record<string, Check>>

export interface DoctorReport {
  part: 'cloud' | 'hub' | 'broker'
  version: string
  at: string
  result: CheckResult
  checks: ({ name: string } & Finding)[]
}

export const ok = (message: string): Finding => ({ result: 'OK', message })
export const warn = (message: string, advice: string): Finding => ({ result: 'WARN', message, advice })
export const fail = (message: string, advice: string): Finding => ({ result: 'FAIL', message, advice })

const ranks: readonly CheckResult[] = ['OK', 'WARN', 'FAIL']
/** The worst of several findings; `otherwise` if there is none. */
export const worst = (findings: readonly Finding[], otherwise: Finding): Finding =>
  findings.toSorted((a, b) => ranks.indexOf(b.result) - ranks.indexOf(a.result))[0] ?? otherwise

const GENERAL_ADVICE = 'Correct the named file, setting or service, then run the doctor again.'
/** The advice for checks that end with an error, by the name of the check or by the part. */
const adviceOnError: Readonly<Record<string, string>> = {
  database: 'Check DATABASE_URL, and that its server runs. If a database file is damaged, restore a backup.',
  backups: 'Check BACKUP_TO: the folder, or the address and the keys of the bucket.',
  'public address':
    'Check PUBLIC_URL, its name in the DNS, the proxy, and the certificate of the proxy. For a certificate of a private authority call NODE_EXTRA_CA_CERTS=FILE larder doctor.',
  broker: 'Check MQTT_URL with its password, MQTT_CA, and that the broker runs.',
  issuer: 'Check IDENTITY_ISSUER, and that this machine reaches it.',
  clock: 'Check IDENTITY_ISSUER, and that this machine reaches it.',
  mail: 'Check SMTP_URL: host, port, user and password.',
  media: 'Check MEDIA_URL: the folder, or the address and the keys of the bucket.',
  journal:
    'If newer software wrote the journal, install that version. Else stop larder-edge and move the journal away: the hub starts a new one.',
  certificates:
    'Correct the path in the setting, or give the file to the user of the service, and check its content.',
  'broker certificate':
    "Set MQTT_CA to the file of the broker's authority, or renew the broker's certificate.",
  'name service': 'Check the network and the DNS of this machine, and the name in MQTT_URL.',
}

/** A check that does not end in time is a FAIL. */
const LIMIT_MS = 20_000

export interface DoctorProgram {
  part: DoctorReport['part']
  version: string
  clock: Clock
  args: readonly string[]
  isTerminal: boolean
  /** The checks of a configuration: the path of `--config`. `close` frees what they have opened. */
  open(config: string | undefined): Promise<{ checks: Checks; close: () => unknown }>
}

/** Runs every check. Exit status: 1 if a check is FAIL, 2 for wrong usage. */
export async function runDoctor(
  program: DoctorProgram,
): Promise<{ exitCode: 0 | 1 | 2; stdout: string; stderr: string }> {
  const { part, args, clock, version } = program
  const words = args.filter((word) => word !== '--json')
  const [option, config, ...rest] = words
  if (words.includes('--help') || words.includes('-h')) return { exitCode: 0, stdout: usage, stderr: '' }
  if (option !== undefined && (option !== '--config' || config === undefined || rest.length > 0))
    return {
      exitCode: 2,
      stdout: '',
      stderr: `error: not understood: ${words.join(' ')}; --help shows the usage\n`,
    }
  const { checks, close } = await program.open(config)
  try {
    const report = await reportOf({ part, version, clock, checks })
    return { ...rendered(report, !program.isTerminal || args.includes('--json')), stderr: '' }
  } finally {
    await close()
  }
}

/** Runs the checks: together, or with `isInTurn` one after another. */
export async function reportOf({
  clock,
  checks,
  isInTurn = false,
  ...of
}: Pick<DoctorReport, 'part' | 'version'> & {
  clock: Clock
  checks: Checks
  isInTurn?: boolean
}): Promise<DoctorReport> {
  const findings: Promise<DoctorReport['checks'][number] | undefined>[] = []
  for (const [name, check] of Object.entries(checks)) {
    const advice = adviceOnError[name] ?? adviceOnError[of.part] ?? GENERAL_ADVICE
    findings.push(within(clock, check, advice).then((found) => found && { name, ...found }))
    if (isInTurn) await findings.at(-1)
  }
  const found = (await Promise.all(findings)).filter((finding) => finding !== undefined)
  return {
    ...of,
    at: new Date(clock.now()).toISOString(),
    result: worst(found, ok('')).result,
    checks: found,
  }
}

/** The report as JSON or as text, with the exit status. */
export const rendered = (report: DoctorReport, isJson: boolean): { exitCode: 0 | 1; stdout: string } => ({
  exitCode: report.result === 'FAIL' ? 1 : 0,
  stdout: isJson ? `${JSON.stringify(report, null, 2)}\n` : textOf(report),
})

const usage = `Usage: larder doctor [--json] [--config FILE]

Checks this program's configuration, its data and the services that it needs. Prints OK, WARN or FAIL for each check, with one
line of advice; JSON with --json or if the output is no terminal. Exit status 1 if a check is FAIL. Changes nothing.
`

async function within(clock: Clock, check: Check, advice: string): Promise<Finding | undefined> {
  try {
    return await Promise.race([
      check(),
      sleep(clock, LIMIT_MS).then(() =>
        fail(`no answer within ${LIMIT_MS / 1000} seconds`, 'Check the network and the other service.'),
      ),
    ])
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return fail(message, advice)
  }
}

const textOf = ({ part, version, result, checks }: DoctorReport): string =>
  [
    ...checks.map(
      ({ name, result: found, message, advice }) =>
        `${found.padEnd(4)}  ${name}: ${message}${advice === undefined ? '' : `\n      ${advice}`}`,
    ),
    `${result.padEnd(4)}  ${part} ${version}: ${counted(checks.length, 'check')}`,
    '',
  ].join('\n')

/** The calls of a file system that the checks need; `node:fs` has them. */
export interface DoctorFiles {
  statfsSync(path: string): { bavail: number; blocks: number; ffree: number; files: number }
  statSync(path: string, options: { throwIfNoEntry: false }): { mode: number } | undefined
  accessSync(path: string, mode: number): void
}

/** Free space and free inodes of the disk of a folder. WARN below 10 %, FAIL below 2 %. */
export const diskChecks = (files: DoctorFiles, setting: string, folder: string): Checks => {
  const free = (what: string, part: number): Finding => {
    const message = `free ${what} of ${setting} (${folder}): ${Math.floor(part * 100)} %`
    const advice = `Free space on the disk of ${folder}, or move ${setting} to a larger disk.`
    if (part < 0.02) return fail(message, advice)
    return part < 0.1 ? warn(message, advice) : ok(message)
  }
  return {
    disk() {
      const { bavail, blocks } = files.statfsSync(folder)
      return free('space', blocks === 0 ? 1 : bavail / blocks)
    },
    inodes() {
      const { ffree, files: all } = files.statfsSync(folder)
      return free('inodes', all === 0 ? 1 : ffree / all)
    },
  }
}

const WRITE = 2

const READ = 4

/** Whether this user can read and write a file. */
export function isUsable(files: Pick<DoctorFiles, 'accessSync'>, path: string): boolean {
  try {
    files.accessSync(path, READ | WRITE)
    return true
  } catch {
    return false
  }
}

/** Whether this user can write into a folder. */
export function writable(files: DoctorFiles, setting: string, folder: string): Finding {
  if (files.statSync(folder, { throwIfNoEntry: false }) === undefined)
    return warn(
      `${setting}: ${folder} does not exist yet`,
      'The service creates it at its first start; check the path.',
    )
  try {
    files.accessSync(folder, WRITE)
    return ok(`${folder} is writable`)
  } catch {
    return fail(
      `${setting}: ${folder} is not writable`,
      `Give the folder to the user of the service: chown -R larder: ${folder}`,
    )
  }
}

/** Whether files with secrets are closed to other users. Absent files pass. */
export function unreadable(files: DoctorFiles, paths: readonly string[]): Finding {
  const open = paths.filter(
    (path) => ((files.statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o007) !== 0,
  )
  if (open.length === 0) return ok('no file with secrets is open to other users')
  return fail(
    `every user of this machine can read ${open.join(', ')}`,
    `Close the files: chmod o= ${open.join(' ')}`,
  )
}

/** A server that does not answer in this time cannot be reached. */
export const CONNECT_TIMEOUT_MS = 5000

/** When the certificate of a TLS server ends, in milliseconds since the Unix epoch. Rejects if it is not trusted. */
export const certificateEnd = (
  connectTls: typeof import('node:tls').connect,
  { host, port, servername }: Pick<NetworkAddress, 'host' | 'port' | 'servername'>,
  ca?: string,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = {
      host,
      port,
      timeout: CONNECT_TIMEOUT_MS,
      ...(servername !== undefined && { servername }),
      ...(ca !== undefined && { ca }),
    }
    const socket = connectTls(options, () => {
      const end = Date.parse(socket.getPeerCertificate().valid_to)
      socket.destroy()
      resolve(end)
    })
    socket.once('timeout', () => socket.destroy(new Error(`${host}:${port} does not answer`)))
    socket.once('error', reject)
  })

/** A certificate: WARN from 14 days before its end, FAIL afterwards. Times are in milliseconds since the Unix epoch. */
export function certificateFinding(
  name: string,
  endsAt: number,
  now: number,
  advice = 'Renew the certificate, and install its file.',
  warnMs = 14 * DAY_MS,
): Finding {
  const day = new Date(endsAt).toISOString().slice(0, 10)
  if (endsAt < now) return fail(`the certificate ${name} has expired on ${day}`, advice)
  if (endsAt < now + warnMs) return warn(`the certificate ${name} expires on ${day}`, advice)
  return ok(`the certificate ${name} is valid until ${day}`)
}

/** A clock compared with another one: WARN above 5 s, FAIL above 60 s. */
export function clockFinding(other: string, differenceMs: number): Finding {
  const message = `this clock differs from ${other} by ${Math.abs(Math.round(differenceMs / 1000))} s`
  const advice = 'Let a time service set the clock: timedatectl set-ntp true'
  if (Math.abs(differenceMs) > 60_000) return fail(message, advice)
  return Math.abs(differenceMs) > 5000 ? warn(message, advice) : ok(message)
}

/** The version of this build. */
export const versionFinding = (version: string, isKnown: boolean): Finding =>
  isKnown
    ? ok(`version ${version}`)
    : warn(
        `the version is ${version}: built without git`,
        'Install a package, or build in a checkout with git.',
      )
