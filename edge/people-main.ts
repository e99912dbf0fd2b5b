import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { runPeople } from './local-api/access-files.ts'

/** The journal of the hub's service: STORE from the environment, the configuration, or the default. */
function storeOf(config: string | undefined): string {
  const fromFile =
    config === undefined
      ? undefined
      : z.looseObject({ STORE: z.string().optional() }).parse(JSON.parse(readFileSync(config, 'utf8'))).STORE
  return process.env['STORE'] ?? fromFile ?? 'data/hub.sqlite'
}

const { exitCode, stdout, stderr } = runPeople(process.argv.slice(2), storeOf, systemRuntime())
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = exitCode
