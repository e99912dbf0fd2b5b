export { errorGuide } from '../error-guide.ts'
