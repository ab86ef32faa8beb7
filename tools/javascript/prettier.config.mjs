// The format of all JavaScript of the project.

export default { printWidth: 120, singleQuote: true };
