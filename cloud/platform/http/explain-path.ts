import { mountsOf, type Route } from '../../../protocol/contract/route.ts'
import { isNear } from '../nearest.ts'

/** A path that is served, as the document spells it. */
interface Known {
  template: string
  /** What it has after `/api/v1`. */
  core: readonly string[]
  methods: string[]
}

/** Longer paths are nobody's slip. */
const MOST_STEPS = 12

/** Says which endpoint a path that is none probably stands for: `GET, POST /api/v1/owners/webhooks`. */
export function pathExplainer(routes: Iterable<Route>): (path: string) => string | undefined {
  const known = new Map<string, Known>()
  for (const route of routes)
    for (const template of mountsOf(route)) {
      const methods = known.get(template)?.methods ?? []
      known.set(template, { template, core: coreOf(template), methods: [...methods, route.method] })
    }
  return (path) => {
    const steps = coreOf(path)
    if (steps.length === 0 || steps.length > MOST_STEPS) return undefined
    const found = nearest([...known.values()], steps) ?? byLastWord([...known.values()], steps)
    return found && `${found.methods.join(', ')} ${found.template}`
  }
}

/** The steps of a path without its prefix, or what somebody took for it: `/v1/…`, `/api/…`. */
const coreOf = (path: string): string[] =>
  path
    .split('/')
    .filter((step) => step !== '')
    .filter((step, index) => index > 1 || !/^(api|v\d)$/i.test(step))

const isParameter = (step: string): boolean => step.startsWith('{')

/** The path with the fewest other words, and of those the one with the fewest parameters. */
function nearest(known: readonly Known[], steps: readonly string[]): Known | undefined {
  const near = known.flatMap((each) => {
    const { core } = each
    if (core.length !== steps.length) return []
    if (!core.every((step, index) => isParameter(step) || isNear(steps[index]!, step))) return []
    const same = core.filter((step, index) => step === steps[index]).length
    const parameters = core.filter(isParameter).length
    // What has nothing of a known path but its number of steps is near to none.
    return same + parameters === 0 && core.length > 1
      ? []
      : [{ each, rank: (core.length - same - parameters) * MOST_STEPS + parameters }]
  })
  return near.filter(({ each }) => !each.core.every(isParameter)).toSorted((a, b) => a.rank - b.rank)[0]?.each
}

/** The one path that ends with the word: `/owners/hubs/open_bin` is looked for in the wrong place. */
function byLastWord(known: readonly Known[], steps: readonly string[]): Known | undefined {
  const word = steps.at(-1)!
  const ending = known.filter(({ core }) => core.at(-1) === word && core.length > 1)
  return new Set(ending.map(({ core }) => core.join('/'))).size === 1 ? ending[0] : undefined
}
