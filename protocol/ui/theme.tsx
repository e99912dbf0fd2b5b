import { signal } from '@preact/signals'
import { Moon, Sun } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from './icon.tsx'

const dark = matchMedia('(prefers-color-scheme: dark)')
const isDark = signal(dark.matches)
dark.addEventListener('change', () => {
  if (document.documentElement.dataset['theme'] === undefined) isDark.value = dark.matches
})

interface ThemeTexts {
  light?: string
  dark?: string
}

/** Light or dark: follows the system until the person chooses. */
export function ThemeButton({
  light = 'Light colours',
  dark: darkText = 'Dark colours',
}: ThemeTexts): JSX.Element {
  return (
    <button
      class="btn btn-ghost btn-square btn-sm"
      aria-label={isDark.value ? light : darkText}
      onClick={() => {
        isDark.value = !isDark.value
        document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light'
      }}
    >
      <Icon icon={isDark.value ? Sun : Moon} />
    </button>
  )
}

const wide = matchMedia('(min-width: 700px)')
const isWide = signal(wide.matches)
wide.addEventListener('change', () => void (isWide.value = wide.matches))

/** The number of devices side by side in a picture. */
export const pictureColumns = (): number => (isWide.value ? 4 : 2)
