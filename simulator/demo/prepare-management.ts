import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { writeJson } from './demo-file.ts'
import type { DemoPlaces } from './places.ts'

interface Tool {
  command: readonly string[]
  environment: Readonly<Record<string, string>>
}

const HostKey = z.object({ host_key: z.string() })
const Registered = z.object({ cloud_key: z.string() })
/** What the cloud was told. */
const Known = z.object({ port: z.int(), host_key: z.string() })

/**
 * Has hub and cloud know one another, as an operator would with the same two commands: at the first start both make their
 * keys, the hub's is pinned in the cloud and the cloud's let in at the hub. Later the hub's key is never pinned anew, so
 * that a changed one is refused; only another port is told.
 */
export function prepareManagement(options: {
  places: DemoPlaces
  hubId: number
  port: number
  /** The management service with `--host-key`. */
  hostKey: Tool
  /** `npm run hubs`. */
  hubs: Tool
}): void {
  const { places, port } = options
  const known = existsSync(places.managementFile)
    ? Known.parse(JSON.parse(readFileSync(places.managementFile, 'utf8')))
    : undefined
  if (known?.port === port) return
  if (!known) writeFileSync(places.authorizedKeys, '', { mode: 0o600 })
  const host_key = known?.host_key ?? HostKey.parse(run(options.hostKey, [])).host_key
  const address = ['--host', '127.0.0.1', '--port', String(port), '--host-key', host_key]
  const { cloud_key } = Registered.parse(
    run(options.hubs, ['set-management', String(options.hubId), ...address]),
  )
  if (!known) writeFileSync(places.authorizedKeys, `${cloud_key}\n`, { mode: 0o600 })
  writeJson(places.managementFile, { port, host_key })
}

function run({ command, environment }: Tool, args: readonly string[]): unknown {
  const { status, stdout, stderr, error } = spawnSync(command[0]!, [...command.slice(1), ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  if (status !== 0) throw new Error(`the hub's management could not be prepared: ${error?.message ?? stderr}`)
  return JSON.parse(stdout)
}
