import { BUILD, PRODUCT_VERSION } from './build.ts'

/**
 * The supported lines of Node, each from its oldest version. 20.19 is the first of its line with all features that
 * Larder uses. Before 22.14 there is no Node-API 10, which SQLite's driver needs.
 */
const lines = [
  [20, 19],
  [22, 14],
  [24, 0],
  [26, 0],
] as const

/** The range in `engines` of every package.json. */
export const nodeRange = lines.map(([major, minor]) => `^${major}.${minor}.0`).join(' || ')

/**
 * A sentence that explains why this version of Node cannot run Larder; undefined if it can. `version` as in `20.19.4`.
 */
export function nodeRefusal(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (lines.some(([line, oldest]) => major === line && minor >= oldest)) return undefined
  const wanted = lines.map(([line, oldest]) =>
    oldest === 0 ? `${line}` : `${line} (from ${line}.${oldest})`,
  )
  return `Larder needs Node ${wanted.slice(0, -1).join(', ')} or ${wanted.at(-1)!}: this is Node ${version}.`
}

// The first import of every program, because later imports may need features that an older Node lacks.
const refusal = nodeRefusal(process.versions.node)
if (process.argv.slice(2).includes('--version')) {
  const origin = BUILD ? '' : 'built without git, '
  process.stdout.write(`larder ${PRODUCT_VERSION} (${origin}Node ${process.versions.node})\n`)
  process.exit(0)
}
if (refusal !== undefined) {
  process.stderr.write(`${refusal}\n`)
  process.exit(1)
}
