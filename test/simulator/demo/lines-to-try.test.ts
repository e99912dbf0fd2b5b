import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatLinesToTry, operatorLine } from '../../../simulator/demo/lines-to-try.ts'

const standard = '/srv/larder/data'

test('the line for operators needs no setting if the demo uses the default folder', () => {
  expect(operatorLine(standard, standard)).toBe('npx larder hubs list')
})

test.each(['/srv/other', '/srv/my demo', "/srv/the owner's", '/srv/$HOME "x"', '/srv/ä'])(
  'a shell reads the folder %s of a demo from the lines that the demo prints',
  (folder) => {
    const shell = (line: string, word: string): string =>
      execFileSync('sh', ['-c', line.replace(word, `sh -c 'printf "%s" "$DATA_DIR" "$@"' -`)], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'] },
      })
    expect(shell(operatorLine(folder, standard), 'npx larder hubs list')).toBe(join(folder, 'cloud'))
    const [first] = formatLinesToTry(folder, standard).split('\n')
    expect(shell(first!, 'npm run try --')).toBe(`cart--data${folder}`)
  },
)
