/** A case and its result, in the form of build servers. */
export interface JunitCase {
  name: string
  ms: number
  /** Why it failed, in a sentence. */
  failure?: string | undefined
  /** Why it was not tried. */
  skipped?: string | undefined
  /** Further output of the case. */
  output?: string | undefined
}

/** A suite as JUnit's XML. */
export function junitReport(suite: string, cases: readonly JunitCase[]): string {
  const count = (holds: (one: JunitCase) => unknown): number => cases.filter(holds).length
  const total = cases.reduce((sum, { ms }) => sum + ms, 0)
  const numbers = `tests="${cases.length}" failures="${count(({ failure }) => failure)}" errors="0" skipped="${count(({ skipped }) => skipped)}"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    `  <testsuite name="${escaped(suite)}" ${numbers} time="${seconds(total)}">`,
    ...cases.flatMap((one) => [
      `    <testcase classname="${escaped(suite)}" name="${escaped(one.name)}" time="${seconds(one.ms)}">`,
      ...(one.failure
        ? [`      <failure message="${escaped(one.failure)}">${escaped(one.failure)}</failure>`]
        : []),
      ...(one.skipped ? [`      <skipped message="${escaped(one.skipped)}"/>`] : []),
      ...(one.output ? [`      <system-out>${escaped(one.output)}</system-out>`] : []),
      '    </testcase>',
    ]),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

const seconds = (ms: number): string => (ms / 1000).toFixed(3)

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
}

/** XML has no characters below the space but three. */
const escaped = (text: string): string =>
  text
    // eslint-disable-next-line no-control-regex
    .replaceAll(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, '?')
    .replaceAll(/[&<>"\n]/g, (character) => entities[character]!)
