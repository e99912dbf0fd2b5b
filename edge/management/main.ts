import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import '../light-zod.ts'
import { readFileSync, writeSync } from 'node:fs'
import { pino } from 'pino'
import { quietly } from '../../protocol/model/repeated-lines.ts'
import { logOutput } from '../../protocol/model/log-output.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { stopper } from '../../protocol/model/stopping.ts'
import { runProgram } from '../run-program.ts'
import { parseAuthorizedKeys, type AuthorizedKeys } from './authorized-keys.ts'
import { readManagementConfig, type ManagementConfig, type Manager } from './config.ts'
import { defaultLimits } from './connection.ts'
import { ensureHostKey, SshServer } from './ssh-server.ts'
import { createManagement, pauseMark } from './management.ts'
import { type ServiceManager, supervisorManager, systemdManager } from './service-manager.ts'
import { storedConfig } from './stored-config.ts'

await runProgram(
  'management',
  readManagementConfig(process.argv.slice(2), process.env),
  ({ task, config }) => (task === 'serve' ? serve(config) : printHostKey(config)),
)

function printHostKey({ HOST_KEY, hardware }: ManagementConfig): void {
  const { publicKey, fingerprint } = ensureHostKey(HOST_KEY, (sentence) =>
    process.stderr.write(`larder management: ${sentence}\n`),
  )
  const shown = { hub_id: hardware.hubId, host_key: publicKey, fingerprint }
  process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`)
}

async function serve(config: ManagementConfig): Promise<void> {
  const runtime = systemRuntime()
  const { clock } = runtime
  const hubId = config.hardware.hubId
  const log = quietly(
    pino(
      { level: config.LOG_LEVEL, base: { part: 'management', hub: hubId } },
      logOutput((bytes) => writeSync(1, bytes)),
    ),
    clock,
  )
  const hostKey = ensureHostKey(config.HOST_KEY, (sentence) => log.warn({}, sentence))
  const management = createManagement({
    hubId,
    bins: config.hardware.controllers.flatMap(({ devices }) =>
      devices.flatMap((device) => (device.kind === 'bin' ? device.number : [])),
    ),
    config: storedConfig(config.STORE),
    manager: managerOf(config.manager, clock),
    mark: pauseMark(`${config.STORE}.paused`),
    runtime,
    log,
    stopTimeoutMs: config.STOP_TIMEOUT_MS,
    startTimeoutMs: config.START_TIMEOUT_MS,
  })
  const server = new SshServer({
    hostKey: hostKey.privateKey,
    authorizedKeys: () => readKeys(config.AUTHORIZED_KEYS, log).keys,
    execute: (command, isWaiting) => management.execute(command, isWaiting),
    limits: defaultLimits,
    runtime,
    log,
  })
  const port = await server.listen(config.HOST, config.PORT).catch((error: NodeJS.ErrnoException) => {
    throw new Error(reasonOf(error, config))
  })
  management.recover()
  const { keys, problems } = readKeys(config.AUTHORIZED_KEYS, log)
  for (const problem of problems) log.warn({ problem }, 'an authorized key is left out')
  log.info({ port, fingerprint: hostKey.fingerprint, keys: keys.length }, 'the management service runs')

  const stop = stopper({
    clock,
    log,
    timeoutMs: config.shutdownTimeoutMs,
    async stop() {
      // A running command is completed, because the hub's service may be stopped now. If that takes too long,
      // `recover` completes it at the next start.
      await management.stop()
      server.close()
    },
    exit: (code) => process.exit(code),
  })
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // If a parent program with a channel started this process (the demo), the process ends with its parent.
  if (process.channel) process.once('disconnect', () => stop('disconnect'))
}

/** If the file cannot be read, no login succeeds. */
function readKeys(path: string, log: Log): AuthorizedKeys {
  try {
    return parseAuthorizedKeys(readFileSync(path, 'utf8'))
  } catch (error) {
    log.error({ path, error: String(error) }, 'the authorized keys cannot be read')
    return { keys: [], problems: [] }
  }
}

function managerOf(manager: Manager, clock: Clock): ServiceManager {
  switch (manager.kind) {
    case 'systemd':
      return systemdManager(manager.unit, clock)
    case 'supervisor':
      return supervisorManager(manager, clock)
  }
}

function reasonOf(error: NodeJS.ErrnoException, { HOST, PORT }: ManagementConfig): string {
  if (error.code === 'EADDRINUSE') return `port ${PORT} of ${HOST} is in use: set PORT to another one`
  if (error.code === 'EACCES') return `port ${PORT} may not be used by this user: set PORT to another one`
  return `cannot listen at ${HOST}:${PORT}, as HOST and PORT say: ${error.message}`
}
