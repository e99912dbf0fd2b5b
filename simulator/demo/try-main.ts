import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { randomHex } from '../../protocol/model/ids.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { deeds, isDeed, type Deed } from './lines-to-try.ts'
import { writeJson } from './places.ts'
import { Begun, RunningDemo, TryError, tryOut } from './try-out.ts'

const usage = `Usage: npm run try -- ${Object.keys(deeds).join('|')} [--data DIR]

Takes one order of a running demo (npm start) from a guest's cart to COMPLETED, in three steps:

${Object.entries(deeds)
  .map(([deed, words]) => `  ${deed.padEnd(8)} ${words}`)
  .join('\n')}

  --data DIR   the demo's DATA_DIR; by default data
`

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

async function main(deed: Deed, dataDir: string): Promise<void> {
  const [demoFile, begunFile] = [join(dataDir, 'demo.json'), join(dataDir, 'try.json')]
  if (!existsSync(demoFile))
    throw new TryError(`No demo runs with its data in ${dataDir}. Start one with: npm start`)
  const begun = await tryOut(deed, {
    demo: RunningDemo.parse(readJson(demoFile)),
    subject: `guest-${randomHex(systemRuntime().random, 4)}`,
    begun: existsSync(begunFile) ? Begun.parse(readJson(begunFile)) : undefined,
    say: (line) => void process.stdout.write(`${line}\n`),
  })
  writeJson(begunFile, begun)
}

try {
  const { values, positionals } = parseArgs({
    options: { data: { type: 'string', default: 'data' }, help: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [word = '', ...others] = positionals
  if (values.help) process.stdout.write(usage)
  else if (!isDeed(word) || others.length > 0) throw new TryError(`one of: ${Object.keys(deeds).join(', ')}`)
  else await main(word, resolve(values.data))
} catch (error) {
  process.stderr.write(`larder try: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
