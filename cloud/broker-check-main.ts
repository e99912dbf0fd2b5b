import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import { rendered, reportOf } from '../protocol/model/doctor.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { brokerQuestions } from './gateway/broker-check.ts'
import { readCloudConfig, readConfigFile } from './platform/settings/config.ts'

const usage = `Usage: larder broker-check [--url URL] [--hub URL --hub URL] [--ca FILE] [--hubs NUMBER] [--json] [--config FILE]

Asks an MQTT broker what Larder needs: sign-in, wills, client ids, sizes, subscriptions, and the rights of hubs. Prints OK, WARN or
FAIL for each question; JSON with --json or if the output is no terminal. Exit status 1 if an answer is FAIL.

  --url URL      address of the broker, with the user and the password of the cloud (default: MQTT_URL)
  --hub URL      address of the broker, with the user hub-ID and its password. Two hubs, which must be switched off:
                 the check ends their connections. Without them the rights of hubs are not checked
  --ca FILE      PEM file of the broker's authority (default: MQTT_CA)
  --hubs NUMBER  number of subscriptions of one cloud process (default: 1000)
`

const options = {
  url: { type: 'string' },
  hub: { type: 'string', multiple: true, default: [] as string[] },
  ca: { type: 'string' },
  hubs: { type: 'string', default: '1000' },
  json: { type: 'boolean', default: false },
  config: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

async function main(): Promise<number> {
  const { values } = parseArgs({ options })
  const { url, hub: hubs, json, help } = values
  if (help) {
    process.stdout.write(usage)
    return 0
  }
  const config = url === undefined ? readCloudConfig(process.env, readConfigFile(values.config)) : undefined
  if (config?.ok === false) throw new Error(config.problems.join('; '))
  const cloud = url ?? config?.config.MQTT_URL?.[0]
  const [first, second, third] = hubs
  if (third !== undefined || (first === undefined) !== (second === undefined))
    throw new Error('--hub is given twice, with the address of one hub each')
  if (cloud === undefined && first === undefined)
    throw new Error('there is no external broker: give --url, or set MQTT_URL')
  if (!/^[1-9]\d{0,5}$/.test(values.hubs)) throw new Error('--hubs must be a number from 1 to 999999')
  const caFile = values.ca ?? config?.config.MQTT_CA ?? (process.env['MQTT_CA'] || undefined)
  const runtime = systemRuntime()
  const { checks, close } = brokerQuestions(
    {
      ...(cloud !== undefined && { cloud }),
      ...(first !== undefined && { hubs: [first, second!] as const }),
      hubCount: Number(values.hubs),
    },
    { runtime, ...(caFile !== undefined && { ca: readFileSync(caFile, 'utf8') }) },
  )
  const { clock } = runtime
  const report = await reportOf({ part: 'broker', version: PRODUCT_VERSION, clock, checks, isInTurn: true })
  close()
  const { exitCode, stdout } = rendered(report, json || !process.stdout.isTTY)
  process.stdout.write(stdout)
  return exitCode
}

const exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
  return 2
})
// A broker that answers nothing leaves connections open.
process.exit(exitCode)
