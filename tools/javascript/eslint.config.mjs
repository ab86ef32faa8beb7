// The lint rules of all JavaScript of the project: the page, the examples, the tests and these tools.

import js from '@eslint/js';
import globals from 'globals';

const MAX_COLUMNS = 120; // as in prettier.config.mjs, which leaves long strings and comments alone

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'max-len': ['error', { code: MAX_COLUMNS }],
      'no-shadow': 'error',
      'no-var': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
    },
  },
  { files: ['src/**/*.js', 'tests/**/*.js'], languageOptions: { globals: globals.browser } },
  { files: ['examples/**/*.mjs', 'tools/**/*.mjs'], languageOptions: { globals: globals.node } },
];
